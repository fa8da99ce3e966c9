// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

namespace convoy {

/// The replicas [first, first + count) that a rank owns: contiguous runs, sizes differ by at most one.
struct ReplicaRun {
  int first = 0, count = 0;
};

/// Deals `replicas` replicas to `ranks` ranks. Ranks beyond the number of replicas own none but take part in every
/// reduction.
constexpr ReplicaRun deal_replicas(int replicas, int ranks, int rank) {
  const int share = replicas / ranks, rest = replicas % ranks;
  return {rank * share + std::min(rank, rest), share + (rank < rest ? 1 : 0)};
}

constexpr int rank_of_replica(int replicas, int ranks, int replica) {
  const int share = replicas / ranks, rest = replicas % ranks, cut = rest * (share + 1);
  return replica < cut ? replica / (share + 1) : rest + (replica - cut) / std::max(share, 1);
}

}  // namespace convoy
