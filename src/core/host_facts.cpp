// SPDX-License-Identifier: Apache-2.0
#include "core/host_facts.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
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

double available_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double kilobytes = 0;
    if (words >> name >> kilobytes && name == "MemAvailable:") return 1024 * kilobytes;
  }
  return 0;
}

}  // namespace convoy
