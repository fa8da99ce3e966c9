// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "comm/collectives.hpp"
#include "comm/nccl/nccl_comm.hpp"
#include "core/replicas.hpp"

namespace convoy {

/// Sums along the fixed tree over replicas, as comm/tree_sum.cpp does over MPI: every rank is sent its slice of all
/// nodes, adds them in the tree's order, and hands its slice of the sum to all. All of it is queued.
class NcclTree {
 public:
  struct Spec {
    int replicas = 1, rank = 0, ranks = 1;
    Index max_count = 0;
    Wire wire = Wire::fp32;     ///< the other format of sums
    bool rounds_nodes = false;  ///< in 16 bits: every sum of two nodes is rounded to them, not the last alone
  };
  /// Allocates one slice for each node on the device, and for 16 bits what is sent and received.
  NcclTree(NcclComm& comm, Device& device, const Spec& spec);

  /// Collective. The parts are the nodes of this rank's run; `out` may be one of them.
  void sum(const Reduction& reduction);

 private:
  struct Owner {
    int rank, index;  ///< its index-th node
  };
  /// Elements [begin, end) of a piece that a rank adds.
  Range slice(int rank, Index count) const;
  float* node(std::size_t position) const { return slices_ + static_cast<Index>(position) * slice_; }
  void gather(const Reduction& sum, const Range& piece);
  void spread(const Reduction& sum, const Range& piece);
  std::uint16_t* allocate_halves(Device& device, std::size_t count) const;

  NcclComm& comm_;
  CommunicationQueue& queue_;
  int rank_, ranks_;
  std::vector<Owner> owners_;  ///< of all nodes, in the order of replicas
  std::vector<TreeAddition> additions_;
  Index piece_ = 0, slice_ = 0;
  float* slices_ = nullptr;
  bool rounds_nodes_;
  // In 16 bits: [own nodes][piece], [nodes][slice], [piece].
  std::uint16_t *sent_ = nullptr, *received_ = nullptr, *spread_ = nullptr;
};

}  // namespace convoy
