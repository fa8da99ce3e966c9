// SPDX-License-Identifier: Apache-2.0
#include "core/cores.hpp"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

namespace convoy {
namespace {

constexpr int most_cpus = 8192;  // of the largest hosts; cpu_set_t ends at 1024

/// A mask of most_cpus bits.
class Mask {
 public:
  Mask() : set_(CPU_ALLOC(most_cpus)) { CPU_ZERO_S(bytes(), set_); }
  ~Mask() { CPU_FREE(set_); }
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  static std::size_t bytes() { return CPU_ALLOC_SIZE(most_cpus); }
  cpu_set_t* get() { return set_; }
  bool has(int id) const { return CPU_ISSET_S(static_cast<std::size_t>(id), bytes(), set_); }
  void add(int id) { CPU_SET_S(static_cast<std::size_t>(id), bytes(), set_); }

 private:
  cpu_set_t* set_;
};

std::vector<int> read_affinity() {
  Mask mask;
  std::vector<int> ids;
  if (sched_getaffinity(0, Mask::bytes(), mask.get()) == 0) {
    for (int id = 0; id < most_cpus; ++id) {
      if (mask.has(id)) ids.push_back(id);
    }
  }
  if (ids.empty()) ids.push_back(0);
  return ids;
}

bool bind_this_thread(const std::vector<int>& ids) {
  Mask mask;
  for (const int id : ids) {
    if (id >= 0 && id < most_cpus) mask.add(id);
  }
  return sched_setaffinity(0, Mask::bytes(), mask.get()) == 0;
}

const std::vector<int> given = read_affinity();

struct Kept {
  std::mutex guard;
  std::vector<int> ids = given;
};
Kept& kept() {
  static Kept instance;
  return instance;
}

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

/// `50000 100000` of cgroup v2, `max` is no limit.
double quota_of(const std::string& text) {
  std::istringstream words(text);
  double quota = 0, period = 0;
  return words >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

/// The least of a group's quota and those of the groups above it.
template <class Read>
double least_quota(std::string group, const Read& read) {
  double least = 0;
  for (;;) {
    if (const double quota = read(group); quota > 0) least = least > 0 ? std::min(least, quota) : quota;
    if (group.empty() || group == "/") return least;
    group.erase(group.rfind('/'));
  }
}

}  // namespace

std::string print_cpu_list(const std::vector<int>& ids) {
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  for (const int id : ids) hwloc_bitmap_set(set, static_cast<unsigned>(id));
  std::string text(static_cast<std::size_t>(hwloc_bitmap_list_snprintf(nullptr, 0, set)), '\0');
  hwloc_bitmap_list_snprintf(text.data(), text.size() + 1, set);
  hwloc_bitmap_free(set);
  return text;
}

int count_cores(const std::vector<Cpu>& cpus) {
  std::set<int> cores;
  for (const Cpu& cpu : cpus) cores.insert(cpu.core);
  return static_cast<int>(cores.size());
}

double cpu_quota(const std::string& root) {
  double least = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // `4:cpu,cpuacct:/slurm/job_7`; version 2 has the one line `0::/path`.
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    double quota = 0;
    if (controllers.empty()) {
      quota = least_quota(group, [&](const std::string& at) {
        return quota_of(first_line(root + "/sys/fs/cgroup" + at + "/cpu.max"));
      });
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      quota = least_quota(group, [&](const std::string& at) {
        const std::string folder = root + "/sys/fs/cgroup/" + controllers + at;
        return quota_of(first_line(folder + "/cpu.cfs_quota_us") + " " + first_line(folder + "/cpu.cfs_period_us"));
      });
    }
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  }
  return least;
}

std::vector<std::vector<int>> deal_cores(const std::vector<Cpu>& cpus, int shares) {
  const int cores = count_cores(cpus);
  if (shares < 1 || cores < shares) return {};
  std::vector<std::vector<int>> dealt(static_cast<std::size_t>(shares));
  int core = -1;
  const Cpu* before = nullptr;
  for (const Cpu& cpu : cpus) {
    if (before == nullptr || cpu.core != before->core) ++core;
    before = &cpu;
    // The share of core c of C is the s with C*s/S <= c < C*(s+1)/S.
    const auto share = static_cast<std::size_t>((static_cast<long>(core + 1) * shares - 1) / cores);
    dealt[share].push_back(cpu.id);
  }
  return dealt;
}

const std::vector<int>& cores_at_start() { return given; }

bool keep_to_cores(const std::vector<int>& ids) {
  if (ids.empty() || !bind_this_thread(ids)) return false;
  const std::lock_guard lock(kept().guard);
  kept().ids = ids;
  return true;
}

void use_all_kept_cores() {
  std::vector<int> ids;
  {
    const std::lock_guard lock(kept().guard);
    ids = kept().ids;
  }
  bind_this_thread(ids);
}

}  // namespace convoy
