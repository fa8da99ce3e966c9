// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

namespace convoy {

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
