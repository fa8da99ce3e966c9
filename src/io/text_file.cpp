// SPDX-License-Identifier: Apache-2.0
#include "io/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/blocking_io.hpp"
#include "core/errors.hpp"
#include "io/file.hpp"

namespace convoy {
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
