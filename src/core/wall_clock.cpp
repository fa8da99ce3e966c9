// SPDX-License-Identifier: Apache-2.0
#include "core/wall_clock.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "core/clock.hpp"

namespace convoy {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

double number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (text.empty() || result.ec != std::errc() || result.ptr != end || !(value >= 0) || value > 1e12)
    refuse("'" + text + "' is no number");
  return value;
}

double with_unit(const std::string& text) {
  if (text.empty()) refuse("it is empty");
  double unit = 1;
  switch (text.back()) {
    case 's':
      break;
    case 'm':
      unit = 60;
      break;
    case 'h':
      unit = 3600;
      break;
    case 'd':
      unit = 86400;
      break;
    default:
      return number(text);
  }
  return unit * number(text.substr(0, text.size() - 1));
}

std::vector<double> fields(const std::string& text) {
  std::vector<double> values;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, ':');) values.push_back(number(field));
  if (text.empty() || text.back() == ':' || values.size() > 3) refuse("it is neither HH:MM:SS nor D-HH:MM:SS");
  // As schedulers have it: 90:00 are ninety minutes, 1:90 is a slip.
  if (std::any_of(values.begin() + 1, values.end(), [](double value) { return value >= 60; }))
    refuse("minutes and seconds behind a colon are below 60");
  return values;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Read before main: the time of loading belongs to the program's.
const double program_start = real_clock().wall_seconds();

/// Parent and start (clock ticks since the host's start) of a process; parent 0: not known.
struct Process {
  char state = 0;
  long parent = 0;
  double start_ticks = 0;
};

Process look_up(long pid) {
  const std::string text = file_text("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  Process process;
  std::string skipped;
  rest >> process.state >> process.parent;
  for (int field = 5; field < 22; ++field) rest >> skipped;
  rest >> process.start_ticks;
  return rest ? process : Process{};
}

bool has_variable(long pid, const std::string& assignment) {
  const std::string environment = file_text("/proc/" + std::to_string(pid) + "/environ");
  return (std::string(1, '\0') + environment).find('\0' + assignment + '\0') != std::string::npos;
}

/// Since 1970, of the host.
double boot_seconds() {
  std::istringstream text(file_text("/proc/stat"));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
  }
  return 0;
}

double start_seconds(const Process& process) {
  const double boot = boot_seconds();
  if (boot == 0 || process.start_ticks == 0) return program_start;
  return boot + process.start_ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Start of the oldest ancestor that belongs to this PBS job: the job's shell, where this process is on the first host.
double pbs_job_start(const std::string& job) {
  Process oldest = look_up(getpid());
  for (long pid = oldest.parent; pid > 1;) {
    const Process process = look_up(pid);
    if (process.parent == 0 || !has_variable(pid, "PBS_JOBID=" + job)) break;
    oldest = process;
    pid = process.parent;
  }
  return start_seconds(oldest);
}

}  // namespace

double wall_seconds() { return real_clock().wall_seconds(); }

std::string local_time_text(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  localtime_r(&time, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

ProcessStart process_start(long pid) {
  const Process process = look_up(pid);
  if (process.state == 0) return {.hidden = pid > 0 && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM)};
  const bool dead = process.state == 'Z' || process.state == 'X';
  return dead ? ProcessStart{} : ProcessStart{.ticks = process.start_ticks, .time = start_seconds(process)};
}

double parse_duration(const std::string& text) {
  const auto dash = text.find('-');
  if (dash != std::string::npos) {
    const auto clock = fields(text.substr(dash + 1));
    double seconds = 86400 * number(text.substr(0, dash)), unit = 3600;
    for (const double value : clock) {
      seconds += value * unit;
      unit /= 60;
    }
    return seconds;
  }
  if (text.find(':') == std::string::npos) return with_unit(text);
  double seconds = 0;
  for (const double value : fields(text)) seconds = seconds * 60 + value;
  return seconds;
}

double parse_end_time(const std::string& text) {
  for (const char* none : {"", "NONE", "None", "N/A", "UNLIMITED", "Unknown", "0"}) {
    if (text == none) return 0;
  }
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"}) {
    std::tm local{};
    local.tm_isdst = -1;
    const char* end = strptime(text.c_str(), form, &local);
    if (end == nullptr || *end != '\0') continue;
    std::tm found = local;
    const std::time_t time = std::mktime(&found);
    // It makes 2 March of 30 February; a leap second may end its day.
    if (time == -1 || (local.tm_sec < 60 && (found.tm_mday != local.tm_mday || found.tm_mon != local.tm_mon)))
      refuse("there is no such day");
    return static_cast<double>(time);
  }
  try {
    return number(text);
  } catch (const std::invalid_argument&) {
    refuse("it is neither seconds since 1970 nor a time like 2026-11-28T14:03:07");
  }
}

EndOfJob end_of_job(const TimeLimit& limit) {
  EndOfJob end;
  const auto consider = [&](double time, const char* source) {
    if (time > 0 && (end.time == 0 || time < end.time)) end = {time, source};
  };
  const auto consider_variable = [&](const char* name, const auto& time_of) {
    const char* value = std::getenv(name);
    if (value == nullptr) return;
    try {
      consider(time_of(value), name);
    } catch (const std::invalid_argument&) {  // what a site's prolog puts there is not the user's fault
    }
  };
  consider(limit.end_time, "--end-time");
  if (limit.limit_seconds > 0) consider(program_start + limit.limit_seconds, "--time-limit");
  consider_variable("SLURM_JOB_END_TIME", parse_end_time);
  if (const char* job = std::getenv("PBS_JOBID"); job != nullptr) {
    consider_variable("PBS_WALLTIME", [&](const std::string& value) {
      const double seconds = parse_duration(value);
      return seconds > 0 ? pbs_job_start(job) + seconds : 0;
    });
  }
  return end;
}

}  // namespace convoy
