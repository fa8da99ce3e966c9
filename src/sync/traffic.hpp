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
    double ready = 1;     ///< gradients: the part of backward after which it can start
    bool waited = false;  ///< the replicas wait for it, also where others travel beside the next steps
    double bytes() const { return static_cast<double>(floats * bytes_of(wire)); }
  };
  std::vector<Sum> sums;
  Index gathered_bytes = 0;      ///< of the messages of all replicas, which every rank receives
  Index steps = 1;               ///< from one synchronisation to the next
  Index start = 0;               ///< before this step there is one after every step, and none of them travels late
  bool beside_steps = false;     ///< sums travel beside the computation of the next `steps` steps
  bool beside_backward = false;  ///< each sum starts as soon as backward has made what it adds
  bool in_a_tree = false;        ///< a rank sends to every other rank itself, instead of along the library's paths
  /// What each group of ranks sums between two synchronisations, so many times, alone.
  struct Group {
    std::vector<Sum> sums = {};
    Index times = 0;
    int ranks = 1;
    bool in_a_tree = false;
  } group = {};
};

Traffic traffic_of(const SyncSpec& spec, const Plan& plan, const SetLayout& layout,
                   Transport transport = Transport::mpi);
/// Floats of the largest sum in this format; 0: there is none.
Index largest_sum(const Traffic& traffic, Wire wire);
/// Of all ranks together, exact if each rank's replicas are one node of the tree: 2 (R - 1) times the
/// arrays, and R - 1 times the messages.
Index bytes_sent(const Traffic& traffic, int ranks);
/// The same of the ranks of one group, for all that it sums between two synchronisations.
Index group_bytes_sent(const Traffic& traffic);

/// describe(), and until when a policy averages after every step.
std::string name_of_policy(const SyncSpec& spec);

/// A job's policy and the plain policies that could replace it: gradients, weights in every step, and weights every H
/// steps; each in fp32 and in bf16, without groups, late averages or a start of other steps. H is the job's, else
/// `local_steps`.
std::vector<SyncSpec> policies_beside(const SyncSpec& own, Index local_steps);

}  // namespace convoy
