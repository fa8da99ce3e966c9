// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/errors.hpp"
#include "io/folder.hpp"

namespace convoy::preparation {

FolderLock::~FolderLock() {
  if (folder_ >= 0) ::close(folder_);
}

void FolderLock::take(const std::string& folder) {
  make_folder(folder, "choose a writable --out");
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) fail(Exit::data, "cannot open the folder '{}' ({})", folder, std::strerror(errno));
  if (::flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fail(Exit::usage, "another preparation is writing into '{}'; wait for its end, or choose another --out", folder);
  }
}

}  // namespace convoy::preparation
