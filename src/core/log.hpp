// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace convoy::log {

enum class Level { debug, info, warn, error, off };

/// Who speaks. Before this call messages carry no rank. Rank 0 speaks for the job; others only warn and report errors.
void configure(int rank, int ranks, const std::string& host);
void set_level(Level level);
/// From now on only warnings and errors appear on the console; the file (also_to_file) gets everything.
void keep_to_file();
/// Also writes every line of this rank to `path` (appends). Throws Error(usage) if it can't be opened.
void also_to_file(const std::string& path);

void write(Level level, std::string_view text);
/// One line on stderr, flushed: `[rank 3/16 gpu-07] error: TEXT`.
void report_error(std::string_view text);
/// What report_error said last on this rank; empty: nothing yet.
std::string last_error();
/// True where progress() shows something: rank 0, stdout, or mpirun's, a terminal.
bool shows_progress();
/// Overwrites the last line on a terminal; nothing where stdout is not one.
void progress(std::string_view text);

/// Speaks on rank 0 only.
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
}
/// Speaks on any rank, with its number.
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace convoy::log
