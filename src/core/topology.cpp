// SPDX-License-Identifier: Apache-2.0
#include "core/topology.hpp"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>

#include "core/errors.hpp"

namespace convoy {
namespace {

constexpr unsigned nvidia = 0x10de, display_class = 0x0300, accelerator_class = 0x0302;

/// Returns the node of all hardware threads of an object; -1: they have several, or none is known. Nodes without
/// threads (memory of GPUs, high-bandwidth memory) have higher numbers than the one that they are attached to.
int node_of(hwloc_topology_t topology, hwloc_obj_t object) {
  int node = -1;
  hwloc_obj_t thread = nullptr;
  while ((thread = hwloc_get_next_obj_inside_cpuset_by_type(topology, object->cpuset, HWLOC_OBJ_PU, thread)) !=
         nullptr) {
    const int own = hwloc_bitmap_first(thread->nodeset);
    if (node >= 0 && own != node) return -1;
    node = own;
  }
  return node;
}

}  // namespace

struct Topology::State {
  hwloc_topology_t topology = nullptr;
};

Topology::Topology() : state_(std::make_unique<State>()) {
  require(hwloc_topology_init(&state_->topology) == 0, "hwloc has no memory");
  load();
}

Topology::Topology(const std::string& xml) : state_(std::make_unique<State>()) {
  require(hwloc_topology_init(&state_->topology) == 0, "hwloc has no memory");
  require(hwloc_topology_set_xmlbuffer(state_->topology, xml.c_str(), static_cast<int>(xml.size()) + 1) == 0,
          "not a topology of hwloc");
  load();
}

Topology::~Topology() { hwloc_topology_destroy(state_->topology); }

void Topology::load() {
  // PCI devices, as Linux lists them, and no more: for the rest hwloc would ask CUDA, OpenCL and others, which start
  // their drivers. Its plugin over libpciaccess, which not every host has, finds the same devices and leaks.
  hwloc_topology_set_components(state_->topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
  hwloc_topology_set_type_filter(state_->topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // Ranks in cgroups of their own must give a shared core the same number.
  hwloc_topology_set_flags(state_->topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_load(state_->topology);  // if it fails, no object is found below
}

const Topology& Topology::of_this_host() {
  static const Topology here;
  return here;
}

std::vector<Cpu> Topology::describe(const std::vector<int>& ids) const {
  std::vector<Cpu> cpus;
  for (const int id : ids) {
    Cpu cpu{id, id, 0};
    if (hwloc_obj_t thread = hwloc_get_pu_obj_by_os_index(state_->topology, static_cast<unsigned>(id))) {
      hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(state_->topology, HWLOC_OBJ_CORE, thread);
      if (core != nullptr) cpu.core = hwloc_bitmap_first(core->cpuset);
      cpu.node = std::max(0, node_of(state_->topology, thread));
    }
    cpus.push_back(cpu);
  }
  std::sort(cpus.begin(), cpus.end(),
            [](const Cpu& a, const Cpu& b) { return std::tie(a.node, a.core, a.id) < std::tie(b.node, b.core, b.id); });
  return cpus;
}

std::vector<int> Topology::gpu_nodes(const char* visible) const {
  using Address = std::tuple<unsigned, unsigned, unsigned, unsigned>;
  std::vector<std::pair<Address, int>> all;
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(state_->topology, device)) != nullptr;) {
    const auto& pci = device->attr->pcidev;
    if (pci.vendor_id != nvidia || (pci.class_id != accelerator_class && pci.class_id != display_class)) continue;
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(state_->topology, device);
    all.push_back({{pci.domain, pci.bus, pci.dev, pci.func}, node_of(state_->topology, place)});
  }
  std::sort(all.begin(), all.end());
  std::vector<int> nodes;
  if (visible == nullptr) {
    for (const auto& gpu : all) nodes.push_back(gpu.second);
    return nodes;
  }
  std::istringstream numbers(visible);
  for (std::string word; std::getline(numbers, word, ',');) {
    char* end = nullptr;
    const auto number = static_cast<std::size_t>(std::strtoul(word.c_str(), &end, 10));
    if (word.empty() || *end != 0 || number >= all.size()) return {};
    nodes.push_back(all[number].second);
  }
  return nodes;
}

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

CpuIsa max_cpu_isa() {
  const char* const name = std::getenv("CONVOY_MAX_CPU_ISA");
  const std::string_view wanted = name == nullptr ? "" : name;
  if (wanted.empty()) return CpuIsa::avx512_core_amx;
  if (wanted == "AVX2") return CpuIsa::avx2;
  if (wanted == "AVX512_CORE") return CpuIsa::avx512_core;
  if (wanted == "AVX512_CORE_BF16") return CpuIsa::avx512_core_bf16;
  if (wanted == "AVX512_CORE_AMX") return CpuIsa::avx512_core_amx;
  fail(Exit::usage, "CONVOY_MAX_CPU_ISA is '{}'; use AVX2, AVX512_CORE, AVX512_CORE_BF16 or AVX512_CORE_AMX", wanted);
}

}  // namespace convoy
