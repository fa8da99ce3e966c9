// SPDX-License-Identifier: Apache-2.0
#include "options/limits.hpp"

#include <stdexcept>

#include "options/ranges.hpp"

namespace convoy {
namespace {

double read_time(double (*parse)(const std::string&), const std::string& text) {
  try {
    constexpr double latest = 1e11;  // the year 5138
    const double seconds = parse(text);
    if (!(seconds <= latest)) throw BadValue("is more seconds than any clock counts");
    return seconds;
  } catch (const std::invalid_argument& problem) {
    throw BadValue(problem.what());
  }
}

}  // namespace

OptionGroup time_limit_options(TimeLimit& limit) {
  OptionGroup group{"Time limit", {}};
  Option end{.name = "end-time", .value = "TIME", .help = "stop before this time (exit 75)"};
  end.allowed = "seconds since 1970, a local time like 2026-11-28T14:03:07, or NONE";
  end.set = [&limit](const std::string& text) { limit.end_time = read_time(parse_end_time, text); };
  end.print = [&limit] { return limit.end_time > 0 ? print_number(limit.end_time) : std::string(); };
  group.add(std::move(end)).only_on_command_line();
  Option length{.name = "time-limit",
                .value = "DURATION",
                .help = "stop this long after the start of the program (exit 75); the earliest limit counts"};
  length.allowed = "seconds, MM:SS, HH:MM:SS, D-HH:MM:SS, or a number with s, m, h or d; 0: none";
  length.set = [&limit](const std::string& text) { limit.limit_seconds = read_time(parse_duration, text); };
  length.print = [&limit] { return print_number(limit.limit_seconds); };
  group.add(std::move(length)).also({"max-time", "walltime"});
  group.add(number_option("end-margin", "SECONDS", limit.margin_seconds, seconds_from_0(),
                          "stop this long before the limit; training adds the measured time of a checkpoint"));
  return group;
}

OptionGroup waiting_options(StallLimits& limits) {
  OptionGroup group{"Stalls", {}};
  group
      .add(number_option("stall-warning-seconds", "SECONDS", limits.warn_seconds, seconds_from_0(),
                         "warn if an operation between ranks has waited this long; 0: never"))
      .also({"stall-warn-seconds", "stall-check-warning-time-seconds"});
  group
      .add(number_option("stall-abort-seconds", "SECONDS", limits.abort_seconds, seconds_from_0(),
                         "end the job with code 5 if an operation between ranks has waited this long; 0: never"))
      .also({"stall-check-shutdown-time-seconds"});
  return group;
}

}  // namespace convoy
