// SPDX-License-Identifier: Apache-2.0
#include "infer/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

/// `/dev/stdout` and what a shell's >(...) gives lead to files that somebody else has open: these are written in place.
bool names_open_file(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  return text.starts_with("/dev/std") || text.starts_with("/dev/fd/") || text.starts_with("/proc/");
}

/// What a chain of links leads to, whether it is there or not.
fs::path follow_links(fs::path path) {
  constexpr int longest_chain = 40;  // the kernel's own
  std::error_code none;
  for (int i = 0; i < longest_chain && fs::is_symlink(path, none); ++i) {
    const fs::path to = fs::read_symlink(path, none);
    if (none) break;
    path = path.parent_path() / to;  // an absolute one replaces all
  }
  return path;
}

/// At its end: a log that is somebody's standard output keeps what it holds. A pipe to which nobody listens is an
/// error.
std::FILE* open_in_place(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  ::fcntl(descriptor, F_SETFL, O_APPEND);  // from here on a slow reader is waited for
  return ::fdopen(descriptor, "a");
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path), file_(open()) {
  if (file_ == nullptr) refuse();
}

std::FILE* OutputFile::open() {
  if (path_.empty()) return stdout;
  std::error_code none;
  const fs::file_status status = fs::status(path_, none);
  if (fs::is_directory(status)) {
    errno = EISDIR;
    return nullptr;
  }
  if (names_open_file(path_) || fs::is_other(status)) return open_in_place(path_);
  target_ = follow_links(path_).string();
  temporary_ = target_ + ".tmp";
  return std::fopen(temporary_.c_str(), "w");
}

OutputFile::~OutputFile() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  remove_unfinished();
}

void OutputFile::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) refuse();
}

void OutputFile::finish() {
  if (std::fflush(file_) != 0) refuse();
  if (file_ == stdout) return;
  if (std::fclose(std::exchange(file_, nullptr)) != 0) refuse();
  if (!temporary_.empty() && std::rename(temporary_.c_str(), target_.c_str()) != 0) refuse();
}

void OutputFile::refuse() const {
  const int reason = errno;
  remove_unfinished();
  fail(Exit::usage, "cannot write '{}' ({}); make room, or choose another --output",
       path_.empty() ? "standard output" : path_, std::strerror(reason));
}

void OutputFile::remove_unfinished() const {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

}  // namespace convoy
