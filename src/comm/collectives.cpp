// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives.hpp"

#include <mpi.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <map>

#include "comm/exchange.hpp"
#include "comm/nccl/module.hpp"
#include "comm/shared_memory.hpp"
#include "comm/state.hpp"
#include "core/module.hpp"
#include "core/version.hpp"

namespace convoy {
namespace {

/// The first two ranks with the same name, in words; empty: every rank has one of its own.
std::string sharing_ranks(const std::vector<std::string>& names, const char* what = "share") {
  std::map<std::string, std::size_t> owners;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    const auto [owner, is_new] = owners.emplace(names[rank], rank);
    if (!is_new && !names[rank].empty())
      return fmt::format("ranks {} and {} {} {}", owner->second, rank, what, names[rank]);
  }
  return {};
}

struct NcclModule {
  const NcclEntry* entry = nullptr;
  std::string problem;  ///< why there is none
};

NcclModule open_nccl() {
  const Module module = open_module("libconvoy_nccl.so");
  if (module.path.empty()) return {nullptr, "this build of Convoy has no libconvoy_nccl.so"};
  if (module.handle == nullptr) return {nullptr, fmt::format("NCCL was not found: {}", module.problem)};
  const auto entry = reinterpret_cast<decltype(&convoy_nccl_entry)>(module_symbol(module, "convoy_nccl_entry"));
  if (entry == nullptr || entry()->build != build_id() + ", " + compiler())
    return {nullptr, module.path + " is of another build than the program"};
  return {entry(), {}};
}

const NcclModule& nccl_module() {
  static const NcclModule module = open_nccl();
  return module;
}

}  // namespace

bool mpi_takes_device_memory() {
#if defined(OMPI_HAVE_MPI_EXT_CUDA) && OMPI_HAVE_MPI_EXT_CUDA
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

RankDevices find_devices(Communicator& communicator, const Device& device) {
  RankDevices devices;
  devices.identities = communicator.all_gather(device.identity(), "devices of the ranks");
  std::int64_t refuses = mpi_takes_device_memory() ? 0 : 1;
  communicator.maximum(std::span(&refuses, 1), "MPI of the ranks");
  devices.mpi_takes_memory = refuses == 0;
  if (const int ranks = communicator.size(); ranks > 1) {
    // As much as the sum will want: a limit on files or memory may lie below it.
    const Index piece = shared_piece(ranks, lane_count, piece_floats);
    devices.sharing_problem = share_memory(communicator, shared_sum_bytes(ranks, lane_count, piece)).problem;
  }
  const auto none = [](const std::string& identity) { return identity.empty(); };
  devices.cards = communicator.all_gather(device.card(), "cards of the ranks");
  for (std::size_t rank = 0; rank < devices.cards.size(); ++rank)
    devices.cards[rank] = communicator.hosts()[rank] + ' ' + devices.cards[rank];
  if (std::any_of(devices.identities.begin(), devices.identities.end(), none)) return devices;
  const std::vector<std::string> problems = communicator.all_gather(nccl_module().problem, "NCCL of the ranks");
  for (std::size_t rank = 0; rank < problems.size() && devices.nccl_problem.empty(); ++rank)
    if (!problems[rank].empty()) devices.nccl_problem = fmt::format("rank {}: {}", rank, problems[rank]);
  return devices;
}

TransportChoice choose_transport(const TransportWish& wish, const RankDevices& devices) {
  const std::vector<std::string>& identities = devices.identities;
  const std::string shared = sharing_ranks(identities);
  std::string obstacle;
  for (std::size_t rank = 0; rank < identities.size() && obstacle.empty(); ++rank)
    if (identities[rank].empty()) obstacle = fmt::format("rank {} has no GPU", rank);
  const bool gpus = obstacle.empty();
  if (gpus && !shared.empty()) obstacle = shared + ", and NCCL needs one each";
  std::string slices;
  if (obstacle.empty()) slices = sharing_ranks(devices.cards, "have slices of one card,");
  if (!slices.empty()) obstacle = slices + ", and NCCL takes one rank for each card";
  if (obstacle.empty()) obstacle = devices.nccl_problem;
  if (wish.backend == "nccl") {
    if (!obstacle.empty())
      fail(Exit::device, "--backend nccl is not possible ({}); use --backend mpi, or {}", obstacle,
           obstacle == devices.nccl_problem ? "put NCCL's folder on LD_LIBRARY_PATH"
                                            : "start one rank for each GPU with --device cuda");
    return {.transport = Transport::nccl, .reason = "NCCL (as asked)"};
  }
  if (wish.backend == "auto" && obstacle.empty() && identities.size() > 1)
    return {.transport = Transport::nccl, .reason = "NCCL (every rank has a GPU of its own)"};
  TransportChoice choice;
  const bool takes_gpu_memory = gpus && wish.memory == MpiMemory::device;
  const std::string unshared = takes_gpu_memory ? "--cuda-aware gives a GPU's memory to MPI"
                               : wish.in_tree   ? "--reproducible and --wire bf16 or fp16 add along a tree of messages"
                                                : devices.sharing_problem;
  if (wish.backend == "shared" && identities.size() > 1 && !unshared.empty())
    fail(Exit::usage, "--backend shared is not possible ({}); use --backend auto", unshared);
  // Also if the ranks of several hosts can't: those of a group may be on one host.
  if (wish.backend != "mpi" && !takes_gpu_memory && !wish.in_tree)
    choice.host_sums = wish.backend == "shared" ? HostSums::shared_memory_only : HostSums::shared_memory;
  choice.reason = identities.size() == 1     ? "none (one rank)"
                  : wish.backend == "mpi"    ? "MPI (as asked)"
                  : wish.backend == "shared" ? "shared memory (as asked)"
                  : unshared.empty()         ? fmt::format("shared memory ({})", obstacle)
                                             : fmt::format("MPI ({}; {})", obstacle, unshared);
  if (takes_gpu_memory) {
    if (!devices.mpi_takes_memory)
      fail(
          Exit::device,
          "--cuda-aware is not possible (this {} says that it can't take a GPU's memory); leave it out, and the all-reduce goes through host memory",
          mpi_version());
    choice.memory = MpiMemory::device;
    choice.reason += ", given the GPU's memory";
  }
  // Allowed, since it lets two ranks be tried on one GPU, but never fast.
  if (!shared.empty())
    choice.warning =
        shared + ": they compute in turns, and the all-reduce goes through host memory; start one rank for each GPU";
  else if (gpus && identities.size() > 1 && wish.backend == "auto" && choice.memory == MpiMemory::host)
    choice.warning = fmt::format(
        "the all-reduce goes through host memory, which is slower ({}); {}", obstacle,
        slices.empty() ? "put NCCL's folder on LD_LIBRARY_PATH" : "take one slice of each card, or turn MIG off");
  return choice;
}

std::unique_ptr<Collectives> make_nccl_collectives(Communicator& communicator, Device& device,
                                                   const CollectivesSpec& spec) {
  require(nccl_module().entry != nullptr, "NCCL was chosen, and can't be opened");
  const NcclEntry& entry = *nccl_module().entry;
  NcclJob job{.rank = communicator.rank(), .ranks = communicator.size(), .id = {}};
  if (job.rank == 0) job.id = entry.make_id();
  communicator.broadcast(job.id, "broadcast of NCCL's id");
  return entry.make(job, communicator.state_->policy, device, spec);
}

bool LocalSum::add(const Reduction& r) const {
  if (r.parts.empty()) {
    device_.fill(r.out, r.count, 0.0F);
    return true;
  }
  std::size_t first = r.parts.size() - 1;
  for (std::size_t i = 0; i < r.parts.size(); ++i)
    if (r.parts[i].data == r.out) first = i;
  require(!reproducible_ || first == r.parts.size() - 1,
          "a reproducible sum on one rank goes into the last part or beside the parts");
  const bool rounds = reproducible_ && r.wire != Wire::fp32;
  for (const Part& part : r.parts)
    if (rounds) device_.round(part.data, r.count, r.wire);
  if (r.parts[first].data != r.out) device_.copy(r.out, r.parts[first].data, r.count, 1.0F);
  for (std::size_t i = r.parts.size(); i-- > 0;) {
    if (i == first) continue;
    device_.add(r.out, r.parts[i].data, r.count);
    if (rounds) device_.round(r.out, r.count, r.wire);
  }
  return r.parts.size() > 1 || r.parts[first].data != r.out;
}

void LocalSum::require_tree(std::span<const Part> parts) const {
  bool same = parts.size() == nodes_.size();
  for (std::size_t i = 0; same && i < nodes_.size(); ++i)
    same = parts[i].first == nodes_[i].first && parts[i].size == nodes_[i].size;
  require(same, "the parts of a reproducible sum are the nodes of this rank's run");
}

}  // namespace convoy
