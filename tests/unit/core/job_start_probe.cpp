// SPDX-License-Identifier: Apache-2.0
// Run by wall_clock_test as the last of a chain of processes: prints by how many seconds the start of the job, as
// end_of_job() sees it under PBS, lies after the start of its parent, and by how many this program's start does.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "core/wall_clock.hpp"

namespace {

/// When the machine started.
double boot_seconds() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
  return 0;
}

/// When a process started. The 22nd field of /proc/PID/stat; the second one, in brackets, may contain blanks.
double start_seconds(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return boot_seconds() + std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int main() {
  setenv("PBS_WALLTIME", "600", 1);
  const double parent = start_seconds(getppid());
  std::printf("%.2f %.2f\n", convoy::end_of_job({}).time - 600 - parent, start_seconds(getpid()) - parent);
}
