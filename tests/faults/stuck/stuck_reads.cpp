// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: reads of some files never return or fail, on one rank of a job, as on a host whose file system went
// away. STUCK_RANK, STUCK_PATH (part of the path), STUCK_HOW (hang or eio).
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool is_meant(int descriptor) {
  const char *rank = std::getenv("STUCK_RANK"), *own = std::getenv("OMPI_COMM_WORLD_RANK"),
             *part = std::getenv("STUCK_PATH");
  if (rank == nullptr || own == nullptr || part == nullptr || std::strcmp(rank, own) != 0) return false;
  char link[64], path[1024];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = 0;
  return std::strstr(path, part) != nullptr;
}

}  // namespace

extern "C" ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
  using Pread = ssize_t (*)(int, void*, size_t, off_t);
  static const auto real = reinterpret_cast<Pread>(dlsym(RTLD_NEXT, "pread"));
  if (!is_meant(descriptor)) return real(descriptor, to, bytes, offset);
  const char* how = std::getenv("STUCK_HOW");
  if (how != nullptr && std::strcmp(how, "eio") == 0) {
    errno = EIO;
    return -1;
  }
  int ends[2];
  char c = 0;
  if (pipe(ends) == 0) static_cast<void>(!read(ends[0], &c, 1));  // nobody writes
  return -1;
}
