// SPDX-License-Identifier: Apache-2.0
#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/descriptor.hpp"
#include "core/errors.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

// Linux moves at most 2 GiB - 4 KiB in one call; smaller pieces keep signals and progress honest.
constexpr std::size_t largest_piece = std::size_t{1} << 30;

int open_flags(File::Access access) {
  switch (access) {
    case File::Access::read:
      return O_RDONLY | O_NONBLOCK | O_CLOEXEC;  // to open a pipe would wait for its writer
    case File::Access::update:
      return O_RDWR | O_CLOEXEC;
    case File::Access::create:
      return O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
  }
  return O_RDONLY;
}

std::uint64_t size_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(Exit::data, "cannot stat '{}' ({})", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(Exit::data, "cannot use '{}' (not a regular file)", path);
  return static_cast<std::uint64_t>(status.st_size);
}

int open_file(const std::string& path, File::Access access) {
  const BlockingIo call("open", path);
  if (access != File::Access::read && is_pipe(path))
    fail(Exit::data, "cannot write '{}' ({}); remove it, or choose another folder", path, pipe_is_no_file);
  const int descriptor = ::open(path.c_str(), open_flags(access), 0666);
  if (descriptor < 0 || access != File::Access::read) return descriptor;
  try {
    size_of(descriptor, path);
  } catch (const Error&) {
    ::close(descriptor);
    throw;
  }
  return descriptor;
}

ssize_t read_piece(int descriptor, const std::string& path, char* to, std::size_t bytes, std::uint64_t offset) {
  const BlockingIo call("read", path);
  return ::pread(descriptor, to, bytes, static_cast<off_t>(offset));
}

ssize_t write_piece(int descriptor, const std::string& path, const char* from, std::size_t bytes,
                    std::uint64_t offset) {
  const BlockingIo call("write", path);
  return ::pwrite(descriptor, from, bytes, static_cast<off_t>(offset));
}

}  // namespace

File::File(const std::string& path, Access access) : path_(path), descriptor_(open_file(path, access)) {
  if (descriptor_ >= 0) return;
  if (access == Access::create) {
    fail(Exit::data, "cannot create '{}' ({}); make room or choose a writable folder", path_, std::strerror(errno));
  }
  fail(Exit::data, "cannot open '{}' ({}); {}", path_, std::strerror(errno),
       access == Access::update ? "make room or repair the file system" : "check its path and rights");
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

std::uint64_t File::size() const { return size_of(descriptor_, path_); }

void File::read_ahead(std::uint64_t offset, std::uint64_t bytes) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void File::read_at(void* to, std::size_t bytes, std::uint64_t offset) const {
  auto* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = read_piece(descriptor_, path_, p, std::min(bytes, largest_piece), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Exit::data, "cannot read '{}' at byte {} ({})", path_, offset, std::strerror(errno));
    if (got == 0) fail(Exit::data, "'{}' is truncated (it ends at byte {}, {} more expected)", path_, offset, bytes);
    p += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

void File::write_at(const void* from, std::size_t bytes, std::uint64_t offset) {
  const auto* p = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = write_piece(descriptor_, path_, p, std::min(bytes, largest_piece), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      fail(Exit::data, "cannot write '{}' ({}); make room or choose another folder", path_,
           put == 0 ? "nothing was written" : std::strerror(errno));
    }
    p += put;
    bytes -= static_cast<std::size_t>(put);
    offset += static_cast<std::uint64_t>(put);
  }
}

void File::sync() {
  const BlockingIo call("fsync", path_);
  // Some file systems can't sync (EINVAL); a full or broken disk says something else.
  if (::fsync(descriptor_) != 0 && errno != EINVAL) {
    fail(Exit::data, "cannot write '{}' to the disk ({}); make room or choose another folder", path_,
         std::strerror(errno));
  }
}

void File::close() {
  const BlockingIo call("close", path_);
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor >= 0 && ::close(descriptor) != 0) {
    fail(Exit::data, "cannot write '{}' ({}); make room or choose another folder", path_, std::strerror(errno));
  }
}

void forget_cached(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
}

void rename_file(const std::string& from, const std::string& to) {
  const BlockingIo call("rename", to);
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail(Exit::data, "cannot rename '{}' to '{}' ({}); make room or choose a writable folder", from, to,
         std::strerror(errno));
  }
}

void sync_folder(const std::string& folder) {
  const BlockingIo call("fsync", folder);
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    fail(Exit::data, "cannot open the folder '{}' ({}); check its rights", folder, std::strerror(errno));
  }
  const int result = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  if (result != 0 && reason != EINVAL) {
    fail(Exit::data, "cannot sync the folder '{}' ({}); make room or repair the file system", folder,
         std::strerror(reason));
  }
}

namespace {

void write_whole(const std::string& path, File::Access access, const std::string& text) {
  File file(path, access);
  file.write_at(text.data(), text.size(), 0);
  file.close();
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;  // what matters is the first error
  std::filesystem::remove(path, ignored);
}

}  // namespace

std::optional<std::string> text_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    if (error) fail(Exit::data, "cannot read '{}' ({})", path, error.message());
    return std::nullopt;
  }
  const File file(path, File::Access::read);
  std::string text(file.size(), '\0');
  file.read_at(text.data(), text.size(), 0);
  return text;
}

void write_text_file(const std::string& path, const std::string& text) {
  write_whole(path, File::Access::create, text);
}

void replace_text_file(const std::string& path, const std::string& text, const std::string& suffix) {
  const std::string temporary = path + suffix;
  try {
    write_whole(temporary, File::Access::create, text);
    rename_file(temporary, path);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
}

bool create_text_file(const std::string& path, const std::string& text) {
  const int descriptor = [&] {
    const BlockingIo call("create", path);
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }();
  if (descriptor < 0) {
    if (errno == EEXIST) return false;
    fail(Exit::data, "cannot create '{}' ({}); make room or choose a writable folder", path, std::strerror(errno));
  }
  ::close(descriptor);
  write_whole(path, File::Access::update, text);
  return true;
}

}  // namespace convoy
