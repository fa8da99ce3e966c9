// SPDX-License-Identifier: Apache-2.0
// powersgd does two all-reduces: first of the left factors P = M Q, then, after each rank has made the columns of the
// sum orthonormal (P'), of the right factors Q = M^T P', which are the next bases.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/trace.hpp"
#include "sync/compressed_exchange.hpp"
#include "sync/compressors.hpp"
#include "sync/replica_sum.hpp"

namespace convoy {
namespace {

ReplicaSumSpec sum_of(const SyncSpec& spec, const CompressionLayout& layout) {
  return {.run = deal_replicas(spec.replicas, spec.ranks, spec.rank),
          .reproducible = spec.reproducible,
          .count = layout.basis_floats};
}

Index largest_left(const CompressionLayout& layout) {
  Index largest = 0;
  for (const CompressedTensor& tensor : layout.tensors) largest = std::max(largest, tensor.left.count);
  return largest;
}

bool all_finite(const float* values, Index n) {
  return std::all_of(values, values + n, [](float value) { return std::isfinite(value); });
}

class FactorSum final : public CompressedExchange {
 public:
  FactorSum(const SyncSpec& spec, const SyncParts& parts, const CompressionLayout& layout, float* lefts)
      : parts_(parts),
        layout_(layout),
        rank_(spec.compression.rank),
        first_replica_(deal_replicas(spec.replicas, spec.ranks, spec.rank).first),
        lefts_(lefts),
        bases_(parts.backend.allocate(layout.basis_floats)),
        next_bases_(parts.backend.allocate(layout.basis_floats)),
        sum_(parts.backend, parts.collectives, sum_of(spec, layout), next_bases_),
        columns_(static_cast<std::size_t>(largest_left(layout))) {}

  static Index floats(const SyncSpec& spec, const CompressionLayout& layout) {
    return layout.basis_floats * (2 + ReplicaSum::slots(sum_of(spec, layout))) + 2 * largest_left(layout);
  }

  void add(const CompressedTensor& tensor, const float* whole) override {
    multiply_by_basis(shape_of(tensor), whole, bases_ + tensor.basis.begin, left(tensor));
  }

  void take(std::span<const ParameterSet> residuals, float /*scale*/) override {
    for (const CompressedTensor& tensor : layout_.tensors)
      make_orthonormal(shape_of(tensor), left(tensor), columns_.data());
    int replica = first_replica_;
    for (const ParameterSet& residual : residuals) {
      for (const CompressedTensor& tensor : layout_.tensors) {
        const LowRank shape = shape_of(tensor);
        float *const values = residual.block + tensor.residual.begin, *const basis = next_bases_ + tensor.basis.begin;
        multiply_by_left(shape, values, left(tensor), basis);
        add_product(shape, -1, left(tensor), basis, values);
      }
      sum_.add(replica++, {0, layout_.basis_floats});
    }
  }

  bool sum(float /*scale*/) override {
    parts_.collectives.finish(sum_.reduce({0, layout_.basis_floats}, "right factors of the gradients"));
    parts_.collectives.await(parts_.backend.record(), "right factors of the gradients");
    // All ranks have the same bits of the sum. If a left factor is not finite, the right one is not, either.
    for (const CompressedTensor& tensor : layout_.tensors)
      if (!all_finite(next_bases_ + tensor.basis.begin, tensor.basis.count)) return false;
    const TraceSpan span("sum of compressed gradients");
    for (const CompressedTensor& tensor : layout_.tensors) {
      float* const to = parts_.gradients + tensor.gradient.begin;
      std::fill_n(to, tensor.gradient.count, 0.0F);
      add_product(shape_of(tensor), 1, left(tensor), next_bases_ + tensor.basis.begin, to);
      // Only the directions of the rows matter: with their lengths, P would grow as the square of the gradient. A row
      // that has become 0 would stay so, and the rank would be lower for ever.
      for (Index at = 0; at < tensor.basis.count; at += tensor.columns) {
        float* const row = next_bases_ + tensor.basis.begin + at;
        if (!scale_to_one(row, tensor.columns)) fill_basis_row(tensor, at / tensor.columns, row);
      }
    }
    std::copy_n(next_bases_, layout_.basis_floats, bases_);
    return true;
  }

  void begin_anew() override { fill_first_bases(layout_, bases_); }
  ParameterSet bases() const override { return {bases_, layout_.basis_floats}; }

 private:
  LowRank shape_of(const CompressedTensor& tensor) const { return {tensor.rows, tensor.columns, rank_}; }
  float* left(const CompressedTensor& tensor) const { return lefts_ + tensor.left.begin; }

  SyncParts parts_;
  const CompressionLayout& layout_;
  Index rank_;
  int first_replica_;
  float *lefts_, *bases_, *next_bases_;
  ReplicaSum sum_;
  std::vector<double> columns_;  ///< of the largest left factor
};

}  // namespace

CompressionMethod factor_sum() {
  return {.floats = FactorSum::floats,
          .make = [](const SyncSpec& spec, const SyncParts& parts, const CompressionLayout& layout,
                     float* lefts) -> std::unique_ptr<CompressedExchange> {
            return std::make_unique<FactorSum>(spec, parts, layout, lefts);
          }};
}

}  // namespace convoy
