// SPDX-License-Identifier: Apache-2.0
// Lets calls that write fail as a full, broken, read-only or slow file system does. Loaded with LD_PRELOAD, or linked
// into a test; the calls of libraries go through it too.
//
// CONVOY_FAILING_CALLS, or set_failing_calls: rules joined by commas, CALL:PATH:WHAT[:TIMES[:AFTER]]. CALL is one of
// those below, or `all`; PATH a part of the file's path, or its end where PATH ends with $; WHAT an error (ENOSPC ...)
// a pause (20ms, before the call is made), HOLD (the call is made when the rules are replaced), or FLIP (a pwrite of
// CALL `write` succeeds, with one bit of what reaches the file flipped); TIMES how often (default 1, 0: always), AFTER
// so many calls that match.
//
// CONVOY_CALLS_LOG: a file to which every call is written that would be looked up in the rules, as CALL PATH in a line;
// files that are opened to be read, which never fails here, as `read PATH`.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "support/failing_calls.hpp"

namespace {

struct Rule {
  std::string call, path;
  int error = 0;
  long pause_ms = 0;
  bool flips = false, holds = false;
  long times = 1, after = 0;
  long seen = 0;
};

struct Rules {
  std::mutex guard;
  std::condition_variable replaced;
  std::vector<Rule> rules;
  long replacements = 0;
  std::atomic<bool> any{false};
};

int error_of(const std::string& name) {
  if (name == "ENOSPC") return ENOSPC;
  if (name == "EDQUOT") return EDQUOT;
  if (name == "EROFS") return EROFS;
  return EIO;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + separator) {
    if (c == separator) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  return parts;
}

void read_rules(Rules& to, const std::string& text) {
  const std::lock_guard lock(to.guard);
  to.rules.clear();
  for (const std::string& word : split(text, ',')) {
    const auto fields = split(word, ':');
    if (fields.size() < 3) continue;
    Rule rule{.call = fields[0], .path = fields[1]};
    if (fields[2].ends_with("ms")) {
      rule.pause_ms = std::atol(fields[2].c_str());
      rule.times = 0;
    } else if (fields[2] == "HOLD") {
      rule.holds = true;
    } else if (fields[2] == "FLIP") {
      rule.flips = true;
    } else {
      rule.error = error_of(fields[2]);
    }
    if (fields.size() > 3) rule.times = std::atol(fields[3].c_str());
    if (fields.size() > 4) rule.after = std::atol(fields[4].c_str());
    to.rules.push_back(rule);
  }
  to.any = !to.rules.empty();
  ++to.replacements;
  to.replaced.notify_all();
}

Rules& rules() {
  static Rules* instance = [] {
    auto* made = new Rules;  // never freed: calls come until the very end
    if (const char* text = std::getenv("CONVOY_FAILING_CALLS")) read_rules(*made, text);
    return made;
  }();
  return *instance;
}

/// The descriptor of CONVOY_CALLS_LOG; < 0: it is not asked for. Made by bare system calls, which are not looked at.
int calls_log() {
  static const int log = [] {
    const char* path = std::getenv("CONVOY_CALLS_LOG");
    constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    return path == nullptr ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, 0666));
  }();
  return log;
}

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

bool matches(const std::string& path, const std::string& part) {
  if (part.ends_with('$')) return path.ends_with(part.substr(0, part.size() - 1));
  return path.find(part) != std::string::npos;
}

/// What fate() answers where the call shall succeed with a bit flipped.
constexpr int flipped = -1;

/// The error that this call shall have; 0: none. Pauses here.
int fate(const char* call, const std::string& path) {
  Rules& all = rules();
  int error = 0;
  long pause_ms = 0;
  {
    std::unique_lock lock(all.guard);
    bool held = false;
    for (Rule& rule : all.rules) {
      if ((rule.call != call && rule.call != "all") || !matches(path, rule.path)) continue;
      const long turn = rule.seen++;
      if (turn < rule.after || (rule.times > 0 && turn >= rule.after + rule.times)) continue;
      pause_ms += rule.pause_ms;
      held |= rule.holds;
      if (error == 0) error = rule.flips ? flipped : rule.error;
    }
    const long now = all.replacements;
    if (held) all.replaced.wait(lock, [&] { return all.replacements != now; });
  }
  if (pause_ms > 0) {
    const timespec pause{pause_ms / 1000, pause_ms % 1000 * 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return error;
}

void note(const char* call, const std::string& path) {
  if (calls_log() < 0) return;
  const std::string line = std::string(call) + ' ' + path + '\n';
  syscall(SYS_write, calls_log(), line.data(), line.size());
}

bool is_watched() { return rules().any || calls_log() >= 0; }

bool fails(const char* call, const std::string& path) {
  if (!is_watched()) return false;
  const int before = errno;
  note(call, path);
  const int error = fate(call, path);
  errno = error > 0 ? error : before;
  return error > 0;
}
bool fails(const char* call, int descriptor) { return is_watched() && fails(call, path_of(descriptor)); }

/// A pwrite by the rules.
template <class Offset>
ssize_t pwrite_by_rules(ssize_t (*next)(int, const void*, size_t, Offset), int descriptor, const void* data,
                        size_t bytes, Offset offset) {
  if (!is_watched()) return next(descriptor, data, bytes, offset);
  const std::string path = path_of(descriptor);
  note("write", path);
  const int before = errno, what = fate("write", path);
  errno = what > 0 ? what : before;
  if (what > 0) return -1;
  if (what != flipped || bytes == 0) return next(descriptor, data, bytes, offset);
  const auto* first = static_cast<const char*>(data);
  std::vector<char> other(first, first + bytes);
  other[bytes / 2] = static_cast<char>(other[bytes / 2] ^ 4);
  return next(descriptor, other.data(), bytes, offset);
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }

}  // namespace

namespace convoy {
void set_failing_calls(const std::string& text) { read_rules(rules(), text); }
}  // namespace convoy

// NOLINTBEGIN(readability-identifier-naming): the names are libc's.
extern "C" {

#define CONVOY_OPEN(name)                                                  \
  int name(const char* path, int flags, ...) {                             \
    static auto* const next = real<int(const char*, int, ...)>(#name);     \
    va_list rest;                                                          \
    va_start(rest, flags);                                                 \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                          \
    if (!writes(flags)) note("read", path);                                \
    if (writes(flags) && fails("open", std::string(path))) return -1;      \
    return next(path, flags, mode);                                        \
  }
CONVOY_OPEN(open)
CONVOY_OPEN(open64)
#undef CONVOY_OPEN

FILE* fopen(const char* path, const char* mode) {
  static auto* const next = real<FILE*(const char*, const char*)>("fopen");
  if (std::strpbrk(mode, "wa+") != nullptr && fails("open", std::string(path))) return nullptr;
  return next(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  static auto* const next = real<FILE*(const char*, const char*)>("fopen64");
  if (std::strpbrk(mode, "wa+") != nullptr && fails("open", std::string(path))) return nullptr;
  return next(path, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  static auto* const next = real<ssize_t(int, const void*, size_t)>("write");
  return fails("write", descriptor) ? -1 : next(descriptor, data, bytes);
}
ssize_t writev(int descriptor, const iovec* pieces, int count) {
  static auto* const next = real<ssize_t(int, const iovec*, int)>("writev");
  return fails("write", descriptor) ? -1 : next(descriptor, pieces, count);
}
ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  static auto* const next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return pwrite_by_rules(next, descriptor, data, bytes, offset);
}
ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  static auto* const next = real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return pwrite_by_rules(next, descriptor, data, bytes, offset);
}
size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  static auto* const next = real<size_t(const void*, size_t, size_t, FILE*)>("fwrite");
  return file != stdout && file != stderr && fails("write", fileno(file)) ? 0 : next(data, size, count, file);
}

int fsync(int descriptor) {
  static auto* const next = real<int(int)>("fsync");
  return fails("fsync", descriptor) ? -1 : next(descriptor);
}
int ftruncate(int descriptor, off_t length) {
  static auto* const next = real<int(int, off_t)>("ftruncate");
  return fails("write", descriptor) ? -1 : next(descriptor, length);
}
int ftruncate64(int descriptor, off64_t length) {
  static auto* const next = real<int(int, off64_t)>("ftruncate64");
  return fails("write", descriptor) ? -1 : next(descriptor, length);
}

int rename(const char* from, const char* to) {
  static auto* const next = real<int(const char*, const char*)>("rename");
  return fails("rename", std::string(to)) ? -1 : next(from, to);
}
int mkdir(const char* path, mode_t mode) {
  static auto* const next = real<int(const char*, mode_t)>("mkdir");
  return fails("mkdir", std::string(path)) ? -1 : next(path, mode);
}
int unlink(const char* path) {
  static auto* const next = real<int(const char*)>("unlink");
  return fails("unlink", std::string(path)) ? -1 : next(path);
}

int remove(const char* path) {
  static auto* const next = real<int(const char*)>("remove");
  return fails("unlink", std::string(path)) ? -1 : next(path);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
