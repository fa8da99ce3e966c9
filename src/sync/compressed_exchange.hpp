// SPDX-License-Identifier: Apache-2.0
// What one kind of compression does with the tensors that a CompressedSum gives it.
#pragma once
#include <memory>
#include <span>

#include "backend/compression_layout.hpp"
#include "sync/sync.hpp"

namespace convoy {

class CompressedExchange {
 public:
  virtual ~CompressedExchange() = default;
  /// In a replica's turn: `whole` is its residual + gradient of the tensor.
  virtual void add(const CompressedTensor& /*tensor*/, const float* /*whole*/) {}
  /// After the rank's last replica: takes from the residuals of its replicas, which hold residual + gradient, what they
  /// send. `scale`: factor of each sample's gradient in this step.
  virtual void take(std::span<const ParameterSet> residuals, float scale) = 0;
  /// Collective. The compressed tensors of the gradient block become the sum of what all replicas send. Returns false,
  /// on all ranks, if it is not finite.
  virtual bool sum(float scale) = 0;
  /// After a sum that is not finite.
  virtual void begin_anew() {}
  /// What all ranks share, laid out as CompressionLayout::basis; without memory: there is none.
  virtual ParameterSet bases() const { return {}; }
};

/// A kind of compression.
struct CompressionMethod {
  /// Memory that `make` allocates, in units of four bytes.
  Index (*floats)(const SyncSpec& spec, const CompressionLayout& layout);
  /// `layout` must outlive the exchange. `lefts`: CompressionLayout::left_floats, which are summed over the replicas
  /// between the last `add` and `take`.
  std::unique_ptr<CompressedExchange> (*make)(const SyncSpec& spec, const SyncParts& parts,
                                              const CompressionLayout& layout, float* lefts);
};

// 2bit and topk are in message_sum.cpp, powersgd in factor_sum.cpp.
CompressionMethod two_bit_messages();
CompressionMethod top_k_messages();
CompressionMethod factor_sum();

}  // namespace convoy
