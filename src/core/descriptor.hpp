// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace convoy {

/// The open of a named pipe waits for its other end, for ever if there is none. So what is to be a file is asked first.
inline bool is_pipe(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}
constexpr const char* pipe_is_no_file = "it is a named pipe, and must be a file";

/// Owns a file descriptor of the system; negative: there is none.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace convoy
