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

int node_of(hwloc_obj_t object) {
  return object->nodeset != nullptr && hwloc_bitmap_weight(object->nodeset) == 1 ? hwloc_bitmap_first(object->nodeset)
                                                                                 : -1;
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
  hwloc_topology_set_io_types_filter(state_->topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
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
      cpu.node = std::max(0, node_of(thread));
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
    all.push_back(
        {{pci.domain, pci.bus, pci.dev, pci.func}, node_of(hwloc_get_non_io_ancestor_obj(state_->topology, device))});
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
