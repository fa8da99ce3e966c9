// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sync/sync.hpp"

namespace convoy {

/// What one synchronisation sums over the ranks, in order.
struct Traffic {
  struct Sum {
    Index floats = 0;
    Wire wire = Wire::fp32;
    double ready = 1;  ///< gradients: the part of backward after which it can start
    double bytes() const { return static_cast<double>(floats * bytes_of(wire)); }
  };
  std::vector<Sum> sums;
  Index gathered_bytes = 0;      ///< of the messages of all replicas, which every rank receives
  Index steps = 1;               ///< from one synchronisation to the next
  bool beside_backward = false;  ///< each sum starts as soon as backward has made what it adds
  bool in_a_tree = false;        ///< a rank sends to every other rank itself, instead of along the library's paths
};

Traffic traffic_of(const SyncSpec& spec, const Plan& plan, const SetLayout& layout,
                   Transport transport = Transport::mpi);
/// Floats of the largest sum in this format; 0: there is none.
Index largest_sum(const Traffic& traffic, Wire wire);
/// Of all ranks together, exact if each rank's replicas are one node of the tree: 2 (R - 1) times the
/// arrays, and R - 1 times the messages.
Index bytes_sent(const Traffic& traffic, int ranks);

/// A job's policy and the policies that could replace it: gradients, weights in every step, and weights every H steps;
/// each in fp32 and in bf16. H is the job's, else `local_steps`.
std::vector<SyncSpec> policies_beside(const SyncSpec& own, Index local_steps);

}  // namespace convoy
