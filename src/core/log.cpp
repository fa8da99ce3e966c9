// SPDX-License-Identifier: Apache-2.0
#include "core/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>

#include "core/descriptor.hpp"
#include "core/errors.hpp"

namespace convoy::log {
namespace {

struct Speaker {
  int rank = 0, ranks = 1;
  std::string prefix;
  std::atomic<Level> level = Level::info;
  std::atomic<bool> only_file = false;
  std::mutex writing;  ///< for what follows: threads write too
  std::string last_error;
  bool progress_shown = false;
  std::string path;
  std::FILE* file = nullptr;
  bool file_failed = false;
};

Speaker& speaker() {
  static Speaker instance;
  return instance;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts = {};
  localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

bool written(const std::string& text, std::FILE* stream) {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  return std::fflush(stream) == 0 && whole;
}

/// Writes a line to a stream, if there is one, and, with its time, to the log file.
void write_line(Speaker& s, std::FILE* stream, std::string_view text) {
  const std::lock_guard lock(s.writing);
  if (s.progress_shown) std::fputs("\r\033[K", stdout);
  s.progress_shown = false;
  if (stream != nullptr) written(fmt::format("{}\n", text), stream);
  if (s.file == nullptr || written(fmt::format("{} {}\n", now(), text), s.file)) return;
  const char* const reason = std::strerror(errno);
  std::clearerr(s.file);
  if (s.file_failed) return;
  s.file_failed = true;
  std::fprintf(stderr, "warning: the log '%s' can't be written (%s); make room. Its lines are shown here\n",
               s.path.c_str(), reason);
}

/// Open MPI gives its ranks a terminal for stdout even where its own output goes to a file: there its stdout counts.
bool writes_to_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::error_code failed;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), failed).string();
  return !failed && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

}  // namespace

void configure(int rank, int ranks, const std::string& host) {
  auto& s = speaker();
  s.rank = rank;
  s.ranks = ranks;
  s.prefix = fmt::format("[rank {}/{} {}] ", rank, ranks, host);
}

void set_level(Level level) { speaker().level = level; }

void keep_to_file() { speaker().only_file = true; }

void also_to_file(const std::string& path) {
  auto& s = speaker();
  if (is_pipe(path))
    fail(Exit::data, "cannot write the log '{}' ({}); remove it, or choose another --output-dir", path,
         pipe_is_no_file);
  std::FILE* const file = std::fopen(path.c_str(), "ab");
  if (file == nullptr)
    fail(Exit::data, "cannot write the log '{}' ({}); choose a writable --output-dir", path, std::strerror(errno));
  const std::lock_guard lock(s.writing);
  if (s.file != nullptr) std::fclose(s.file);
  s.path = path;
  s.file = file;
}

void write(Level level, std::string_view text) {
  auto& s = speaker();
  if (level < s.level) return;
  if (level == Level::warn) return write_line(s, stderr, fmt::format("{}warning: {}", s.prefix, text));
  if (level == Level::error) return report_error(text);
  if (s.rank == 0) write_line(s, s.only_file ? nullptr : stdout, text);
}

void report_error(std::string_view text) {
  auto& s = speaker();
  {
    const std::lock_guard lock(s.writing);
    s.last_error = text;
  }
  write_line(s, stderr, fmt::format("{}error: {}", s.prefix, text));
}

std::string last_error() {
  auto& s = speaker();
  const std::lock_guard lock(s.writing);
  return s.last_error;
}

bool shows_progress() {
  static const bool terminal = writes_to_terminal();
  return terminal && speaker().rank == 0 && !speaker().only_file;
}

void progress(std::string_view text) {
  auto& s = speaker();
  if (!shows_progress()) return;
  const std::lock_guard lock(s.writing);
  std::printf("\r\033[K%.*s", static_cast<int>(text.size()), text.data());
  std::fflush(stdout);
  s.progress_shown = true;
}

}  // namespace convoy::log
