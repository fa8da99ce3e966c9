// SPDX-License-Identifier: Apache-2.0
#include "sync/compressed_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/trace.hpp"

namespace convoy {
namespace {

CompressionMethod method_of(Compression kind) {
  switch (kind) {
    case Compression::none:
      break;
    case Compression::two_bits:
      return two_bit_messages();
    case Compression::top_k:
      return top_k_messages();
    case Compression::power_sgd:
      return factor_sum();
  }
  fail(Exit::internal, "nothing implements compression {}", static_cast<int>(kind));
}

/// What a rank keeps of every kind of compression, beside the sum's slots.
struct Room {
  int residuals = 0, wholes = 0;  ///< each of all compressed tensors
  Index plain_floats = 0;         ///< what travels as it is, and the left factors
  ReplicaSumSpec plain_sum;
};

Room room_of(const SyncSpec& spec, const CompressionLayout& layout) {
  const ReplicaRun run = deal_replicas(spec.replicas, spec.ranks, spec.rank);
  const int turns = deal_replicas(spec.replicas, spec.ranks, 0).count;
  const Index plain_floats = layout.plain_floats + layout.left_floats;
  return {.residuals = run.count,
          .wholes = std::min(run.count, turns - 1),
          .plain_floats = plain_floats,
          .plain_sum = {.run = run,
                        .reproducible = spec.reproducible,
                        .last_leaf = run.count < turns ? LastLeaf::leaves : LastLeaf::stays,
                        .count = plain_floats}};
}

}  // namespace

Index compression_floats(const SyncSpec& spec, const ParameterTable& table) {
  if (!spec.compression.is_on()) return 0;
  const CompressionLayout layout = compression_layout(table, spec.compression);
  const Room room = room_of(spec, layout);
  return (room.residuals + room.wholes) * layout.residual_floats +
         room.plain_floats * (1 + ReplicaSum::slots(room.plain_sum)) +
         method_of(spec.compression.kind).floats(spec, layout);
}

CompressedSum::CompressedSum(const SyncSpec& spec, const SyncParts& parts)
    : parts_(parts),
      layout_(compression_layout(parts.plan.table, spec.compression)),
      run_(deal_replicas(spec.replicas, spec.ranks, spec.rank)) {
  const Room room = room_of(spec, layout_);
  plain_count_ = room.plain_floats;
  plain_ = parts.backend.allocate(plain_count_);
  plain_sum_.emplace(parts.backend, parts.collectives, room.plain_sum, plain_);
  for (int i = 0; i < room.residuals; ++i)
    residuals_.push_back({parts.backend.allocate(layout_.residual_floats), layout_.residual_floats});
  for (int i = 0; i < room.wholes; ++i) wholes_.push_back(parts.backend.allocate(layout_.residual_floats));
  exchange_ = method_of(spec.compression.kind).make(spec, parts, layout_, plain_ + layout_.plain_floats);
}

void CompressedSum::add(int replica) {
  const TraceSpan span("compression");
  const auto own = static_cast<std::size_t>(replica - run_.first);
  float* const block = parts_.gradients;
  parts_.collectives.await(parts_.backend.record(), "gradients to be compressed");
  float* to = plain_;
  for (const Range& range : layout_.plain) {
    std::copy_n(block + range.begin, range.count, to);
    to += align_floats(range.count);
  }
  // The residual itself stays until the flags of all replicas are known.
  for (const CompressedTensor& tensor : layout_.tensors) {
    float *const gradient = block + tensor.gradient.begin, *const sum = whole(own, tensor);
    const float* const kept = residuals_[own].block + tensor.residual.begin;
    for (Index i = 0; i < tensor.gradient.count; ++i) sum[i] = kept[i] + gradient[i];
    exchange_->add(tensor, sum);
  }
  plain_sum_->add(replica, {0, plain_count_});
}

float* CompressedSum::whole(std::size_t own, const CompressedTensor& tensor) const {
  return own < wholes_.size() ? wholes_[own] + tensor.residual.begin : parts_.gradients + tensor.gradient.begin;
}

void CompressedSum::keep() {
  for (std::size_t own = 0; own < residuals_.size(); ++own)
    for (const CompressedTensor& tensor : layout_.tensors) {
      const float* const from = whole(own, tensor);
      float* const to = residuals_[own].block + tensor.residual.begin;
      for (Index i = 0; i < tensor.gradient.count; ++i)
        to[i] = std::abs(from[i]) <= std::numeric_limits<float>::max() ? from[i] : 0.0F;
    }
}

void CompressedSum::spoil_gradients() {
  for (const CompressedTensor& tensor : layout_.tensors)
    std::fill_n(parts_.gradients + tensor.gradient.begin, tensor.gradient.count,
                std::numeric_limits<float>::quiet_NaN());
}

void CompressedSum::begin_anew() {
  for (const ParameterSet& each : residuals_) std::fill_n(each.block, each.count, 0.0F);
  exchange_->begin_anew();
  spoil_gradients();
  parts_.gradients[parts_.plan.table.flags.begin] = 1;
}

bool CompressedSum::is_finite() const {
  const Range& flags = parts_.plan.table.flags;
  const float* const begin = parts_.gradients + flags.begin;
  return std::all_of(begin, begin + flags.count, [](float flag) { return flag == 0; });
}

void CompressedSum::reduce(float scale) {
  parts_.collectives.finish(plain_sum_->reduce({0, plain_count_}, "gradients that travel as they are"));
  parts_.collectives.await(parts_.backend.record(), "gradients that travel as they are");
  const float* from = plain_;
  for (const Range& range : layout_.plain) {
    std::copy_n(from, range.count, parts_.gradients + range.begin);
    from += align_floats(range.count);
  }
  if (!is_finite()) return spoil_gradients();
  {
    const TraceSpan span("compression");
    keep();
    exchange_->take(residuals_, scale);
  }
  if (!exchange_->sum(scale)) begin_anew();
}

}  // namespace convoy
