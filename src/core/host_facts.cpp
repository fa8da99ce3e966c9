// SPDX-License-Identifier: Apache-2.0
#include "core/host_facts.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace convoy {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    names.push_back(at->path().filename().string());
  return names;
}

void add_interfaces(const fs::path& root, std::vector<std::string>& to) {
  constexpr long megabits_a_gigabit = 1000;
  for (const std::string& name : names_in(root)) {
    if (name == "lo" || first_line(root / name / "operstate") != "up") continue;
    const long megabits = std::strtol(first_line(root / name / "speed").c_str(), nullptr, 10);
    std::string speed;
    if (megabits >= megabits_a_gigabit) speed = fmt::format(" {:g} Gb/s", static_cast<double>(megabits) / 1000);
    if (megabits > 0 && megabits < megabits_a_gigabit) speed = fmt::format(" {} Mb/s", megabits);
    to.push_back(name + speed);
  }
}

void add_ports(const fs::path& root, std::vector<std::string>& to) {
  for (const std::string& device : names_in(root)) {
    for (const std::string& port : names_in(root / device / "ports")) {
      const fs::path here = root / device / "ports" / port;
      if (first_line(here / "state").find("ACTIVE") == std::string::npos) continue;
      // `200 Gb/sec (4X HDR)`
      std::istringstream rate(first_line(here / "rate"));
      std::string number;
      rate >> number;
      to.push_back(fmt::format("{} port {}{}", device, port, number.empty() ? "" : " " + number + " Gb/s"));
    }
  }
}

}  // namespace

std::vector<std::string> network_links(const std::string& root) {
  std::vector<std::string> links;
  add_interfaces(root + "/sys/class/net", links);
  add_ports(root + "/sys/class/infiniband", links);
  std::sort(links.begin(), links.end());
  return links;
}

Room room_at(const std::string& path) {
  struct statvfs system {};
  if (::statvfs(path.c_str(), &system) != 0) return {};
  const auto block = static_cast<double>(system.f_frsize);
  return {.free_bytes = static_cast<double>(system.f_bavail) * block,
          .total_bytes = static_cast<double>(system.f_blocks) * block,
          .free_files = system.f_files > 0 ? static_cast<double>(system.f_favail) : -1};
}

namespace {

/// Bytes of a line of /proc/meminfo; 0: there is none.
double memory_line(const std::string& root, const char* wanted) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double kilobytes = 0;
    if (words >> name >> kilobytes && name == wanted) return 1024 * kilobytes;
  }
  return 0;
}

/// The least limit of a control group and of those above it. `file`: its name; `max` and numbers above `most` mean no
/// limit.
double group_limit(const std::string& hierarchy, std::string group, const char* file, double most) {
  double least = most;
  while (true) {
    double bytes = 0;
    if (std::istringstream(first_line(hierarchy + group + "/" + file)) >> bytes && bytes > 0)
      least = std::min(least, bytes);
    if (group.empty() || group == "/") return least;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

double available_memory(const std::string& root) { return memory_line(root, "MemAvailable:"); }

double memory_limit(const std::string& root) {
  double least = memory_line(root, "MemTotal:");
  if (least == 0) return 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // `4:memory:/job/7`, or `0::/job/7` of version 2
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (group.empty() || group.front() != '/') continue;
    if (controllers.empty()) least = group_limit(root + "/sys/fs/cgroup", group, "memory.max", least);
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = group_limit(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", least);
  }
  return least;
}

double peak_memory() {
  rusage usage{};
  constexpr double kilobyte = 1024;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? kilobyte * static_cast<double>(usage.ru_maxrss) : 0;
}

std::string nvidia_driver(const std::string& root) {
  // `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ...`
  std::istringstream words(first_line(root + "/proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (number && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::map<std::string, std::string> job_variables(const char* const* environment) {
  constexpr std::array wanted{"NCCL_", "OMPI_", "UCX_", "OMP_", "SLURM_", "PBS_", "HDF5_", "CUDA_", "CONVOY_"};
  // OMPI_MCA_orte_precondition_transports and SLURM_JWT let their holder in.
  constexpr std::array secret{"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "JWT", "TRANSPORTS"};
  std::map<std::string, std::string> found;
  for (; *environment != nullptr; ++environment) {
    const std::string text = *environment;
    const auto equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    std::string capitals = name;
    for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const bool is_wanted =
        name == "LOADEDMODULES" ||
        std::any_of(wanted.begin(), wanted.end(), [&](const char* prefix) { return name.starts_with(prefix); });
    const bool is_secret = std::any_of(secret.begin(), secret.end(),
                                       [&](const char* word) { return capitals.find(word) != std::string::npos; });
    if (is_wanted && !is_secret && equals < text.size()) found[name] = text.substr(equals + 1);
  }
  return found;
}

}  // namespace convoy
