// SPDX-License-Identifier: Apache-2.0
#include "io/append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/descriptor.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

int open_to_append(const std::string& path, int flags) {
  const BlockingIo call("open", path);
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
}

}  // namespace

AppendFile::AppendFile(std::string path, Start start) : path_(std::move(path)) {
  if (is_pipe(path_))
    fail(Exit::data, "cannot open '{}' for writing ({}); remove it, or choose another --output-dir", path_,
         pipe_is_no_file);
  descriptor_ = open_to_append(path_, start == Start::fresh ? O_TRUNC : 0);
  if (descriptor_ < 0) {
    fail(Exit::data, "cannot open '{}' for writing ({}); make room or choose a writable --output-dir", path_,
         std::strerror(errno));
  }
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::string_view record) {
  const BlockingIo call("write", path_);
  struct stat before {};
  int reason = ::fstat(descriptor_, &before) == 0 ? 0 : errno;
  if (reason == 0 && before.st_nlink == 0) {  // somebody removed it: what is written now would be lost unseen
    // Or a newer attempt has put its own in its place, which is not this one's to write.
    const int again = open_to_append(path_, O_EXCL);
    reason = again < 0 || ::fstat(again, &before) != 0 ? errno : 0;
    if (again >= 0) ::close(std::exchange(descriptor_, again));
    if (reason == 0) log::warn("'{}' was removed; a new one holds the records from here on", path_);
  }
  for (std::size_t done = 0; reason == 0 && done < record.size();) {
    const ssize_t put = ::write(descriptor_, record.data() + done, record.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put > 0) {
      done += static_cast<std::size_t>(put);
      continue;
    }
    reason = put == 0 ? ENOSPC : errno;
    if (done > 0 && ::ftruncate(descriptor_, before.st_size) != 0) reason = errno;
  }
  if (reason == EEXIST)
    fail(Exit::superseded, "'{}' is a newer attempt's by now, which continues this run: this one no longer writes it",
         path_);
  if (reason != 0) {
    fail(Exit::data, "cannot write '{}' ({}); make room or repair the file system", path_, std::strerror(reason));
  }
}

OptionalRecords::OptionalRecords(const std::string& path, AppendFile::Start start) {
  try {
    file_ = std::make_unique<AppendFile>(path, start);
  } catch (const Error& e) {
    log::warn("{}. The run continues without this file", e.what());
  }
}

void OptionalRecords::append(std::string_view record) {
  if (!file_) return;
  try {
    file_->append(record);
    if (missing_ > 0) log::info("'{}' can be written again; {} records are missing in it", file_->path(), missing_);
    missing_ = 0;
  } catch (const Error& e) {
    const bool newer = e.code() == Exit::superseded;
    if (missing_++ == 0) log::warn("{}{}", e.what(), newer ? "" : ". The run continues; records are lost until then");
  }
}

}  // namespace convoy
