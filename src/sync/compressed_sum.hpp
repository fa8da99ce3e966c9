// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/compression_layout.hpp"
#include "sync/compressed_exchange.hpp"
#include "sync/replica_sum.hpp"
#include "sync/sync.hpp"

namespace convoy {

/// The sum of the replicas' gradients where each sends less than its gradient, and keeps the rest for the next step
/// (error feedback: Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019). The replica is the unit: what it
/// sends depends on its own gradients, so with SyncSpec::reproducible a job has the same bits on any number of ranks.
/// Host memory only. What is sent is the CompressedExchange's affair.
class CompressedSum {
 public:
  /// Allocates everything: compression_floats().
  CompressedSum(const SyncSpec& spec, const SyncParts& parts);
  CompressedSum(const CompressedSum&) = delete;
  CompressedSum& operator=(const CompressedSum&) = delete;

  /// Takes what a replica of this rank has written into the gradient block; replicas come in order.
  void add(int replica);
  /// Collective. After the rank's last add: the gradient block becomes the sum over all replicas. `scale`:
  /// factor of each sample's gradient in this step; the 2-bit threshold is multiplied by it too. Where a replica's
  /// gradient is not finite the step is not applied: no replica keeps anything of it, and what would be compressed
  /// becomes NaN, as such a sum is.
  void reduce(float scale);

  /// What the owned replicas have not sent yet, laid out as CompressionLayout::residual.
  std::span<const ParameterSet> residuals() const { return residuals_; }
  /// powersgd: the bases of the next step, the same on all ranks, which their loader fills first (first_bases()).
  ParameterSet bases() const { return exchange_->bases(); }

 private:
  bool is_finite() const;
  /// Residual + gradient of a replica. For a replica of the last turn, the gradient block; else a block of its own.
  float* whole(std::size_t own, const CompressedTensor& tensor) const;
  /// What a step has made of residuals and gradients becomes the residuals. Values that are not finite are dropped.
  void keep();
  void spoil_gradients();
  /// After a step whose sum is beyond float's range: it is not applied, and no replica keeps anything.
  void begin_anew();

  SyncParts parts_;
  CompressionLayout layout_;
  ReplicaRun run_;
  // What travels as it is, and behind it the left factors.
  float* plain_ = nullptr;
  Index plain_count_ = 0;
  std::optional<ReplicaSum> plain_sum_;
  std::vector<ParameterSet> residuals_;  ///< of the owned replicas
  std::vector<float*> wholes_;           ///< of the replicas before the last turn, laid out as residuals
  std::unique_ptr<CompressedExchange> exchange_;
};

}  // namespace convoy
