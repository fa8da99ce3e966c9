// SPDX-License-Identifier: Apache-2.0
#include "core/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/errors.hpp"

namespace convoy::log {
namespace {

struct Speaker {
  int rank = 0, ranks = 1;
  std::string prefix, last_error;
  Level level = Level::info;
  std::atomic<bool> progress_shown = false;
  std::shared_ptr<spdlog::logger> console, file;
};

Speaker& speaker() {
  static Speaker instance;
  static const bool made = [] {
    Speaker& s = instance;
    s.console = std::make_shared<spdlog::logger>("convoy", std::make_shared<spdlog::sinks::stdout_sink_mt>());
    s.console->set_pattern("%v");
    s.console->flush_on(spdlog::level::info);
    s.console->set_level(spdlog::level::trace);
    return true;
  }();
  static_cast<void>(made);
  return instance;
}

void clear_progress(Speaker& s) {
  if (s.progress_shown.exchange(false)) std::fputs("\r\033[K", stdout);
}

/// Open MPI gives its ranks a terminal for stdout even where its own output goes to a file: there its stdout counts.
bool writes_to_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::error_code failed;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), failed).string();
  return !failed && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

void to_stderr(Speaker& s, const std::string& line) {
  clear_progress(s);
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
  if (s.file) s.file->warn(line);
}

}  // namespace

void configure(int rank, int ranks, const std::string& host) {
  auto& s = speaker();
  s.rank = rank;
  s.ranks = ranks;
  s.prefix = fmt::format("[rank {}/{} {}] ", rank, ranks, host);
}

void set_level(Level level) { speaker().level = level; }

void also_to_file(const std::string& path) {
  auto& s = speaker();
  try {
    s.file = std::make_shared<spdlog::logger>("file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  } catch (const spdlog::spdlog_ex& e) {
    fail(Exit::usage, "cannot write the log '{}' ({}); choose a writable --output-dir", path, e.what());
  }
  s.file->set_error_handler([](const std::string& problem) {
    static bool told = false;
    if (!told)
      std::fprintf(stderr, "warning: the log file can't be written (%s); make room. Its lines are shown here\n",
                   problem.c_str());
    told = true;
  });
  s.file->set_pattern("%Y-%m-%d %H:%M:%S %v");
  s.file->flush_on(spdlog::level::info);
}

void write(Level level, std::string_view text) {
  auto& s = speaker();
  if (level < s.level) return;
  if (level == Level::warn) return to_stderr(s, fmt::format("{}warning: {}", s.prefix, text));
  if (level == Level::error) return report_error(text);
  if (s.rank != 0) return;
  clear_progress(s);
  s.console->info(text);
  if (s.file) s.file->info(text);
}

void report_error(std::string_view text) {
  auto& s = speaker();
  s.last_error = text;
  to_stderr(s, fmt::format("{}error: {}", s.prefix, text));
}

std::string last_error() { return speaker().last_error; }

bool shows_progress() {
  static const bool terminal = writes_to_terminal();
  return terminal && speaker().rank == 0;
}

void progress(std::string_view text) {
  auto& s = speaker();
  if (!shows_progress()) return;
  std::printf("\r\033[K%.*s", static_cast<int>(text.size()), text.data());
  std::fflush(stdout);
  s.progress_shown = true;
}

}  // namespace convoy::log
