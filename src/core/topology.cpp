// SPDX-License-Identifier: Apache-2.0
#include "core/topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
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

}  // namespace convoy
