// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <vector>

#include "comm/collectives.hpp"
#include "core/replicas.hpp"
#include "support/queue_device.hpp"

namespace convoy {

/// As gradients go: two buckets a step, written by queued work, summed over the ranks, read by queued work. Sums of
/// small integers are exact in float in any order.
class BucketStep {
 public:
  struct Job {
    int replicas = 1, ranks = 1, rank = 0;
    bool reproducible = false;
  };
  BucketStep(Collectives& sums, QueueDevice& device, const Job& job) : sums_(sums), device_(device), job_(job) {
    const ReplicaRun run = deal_replicas(job.replicas, job.ranks, job.rank);
    for (Bucket& bucket : buckets_) {
      bucket.out = device.allocate(count);
      bucket.seen = device.allocate(count);
      if (job.reproducible)
        for (const TreeNode& node : tree_nodes(run)) bucket.parts.push_back({node.first, node.size, nullptr});
      else
        for (int r = run.first; r < run.first + run.count; ++r) bucket.parts.push_back({r, 1, nullptr});
      for (Part& part : bucket.parts) part.data = device.allocate(count);
      if (!bucket.parts.empty()) bucket.parts.back().data = bucket.out;
    }
  }

  /// Collective. The number of wrong values among those that the queue saw.
  Index run(int step) {
    for (Bucket& bucket : buckets_) {
      device_.compute([&bucket, step] {
        for (const Part& part : bucket.parts)
          for (Index i = 0; i < count; ++i) part.data[i] = total(part.first, part.size, i, step);
      });
      bucket.ticket = sums_.submit({bucket.out, bucket.parts, count, device_.record(), "gradient bucket"});
      sums_.poll();
    }
    for (Bucket& bucket : buckets_) {
      sums_.finish(bucket.ticket);
      device_.copy(bucket.seen, bucket.out, count, 1.0F);
      sums_.await(device_.record(), "counters");
    }
    Index wrong = 0;
    for (const Bucket& bucket : buckets_)
      for (Index i = 0; i < count; ++i) wrong += bucket.seen[i] != total(0, job_.replicas, i, step);
    return wrong;
  }

  static constexpr Index count = 333;

 private:
  static float total(int first, int size, Index i, int step) {
    float sum = 0;
    for (int r = first; r < first + size; ++r) sum += static_cast<float>((r + 1) * (i % 101 + 1) + step);
    return sum;
  }

  struct Bucket {
    float *out = nullptr, *seen = nullptr;
    std::vector<Part> parts;
    Ticket ticket = 0;
  };
  Collectives& sums_;
  QueueDevice& device_;
  Job job_;
  std::array<Bucket, 2> buckets_;
};

}  // namespace convoy
