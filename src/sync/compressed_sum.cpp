// SPDX-License-Identifier: Apache-2.0
#include "sync/compressed_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/trace.hpp"

namespace convoy {
namespace {

/// Values whose counts stay in a CPU's first cache while all replicas are added; a multiple of 4.
constexpr Index counted_at_once = 1 << 12;

/// What a rank keeps, beside the sums' slots.
struct Room {
  int residuals = 0, wholes = 0;       ///< each of all compressed tensors
  Index plain_floats = 0;              ///< what travels as it is, and the left factors
  Index own_bytes = 0, all_bytes = 0;  ///< messages
  Index sorted = 0, counts = 0;        ///< numbers of four bytes
  Index columns = 0;                   ///< numbers of eight bytes
  ReplicaSumSpec plain_sum, basis_sum;
};

Room room_of(const SyncSpec& spec, const CompressionLayout& layout) {
  const ReplicaRun run = deal_replicas(spec.replicas, spec.ranks, spec.rank);
  const int turns = deal_replicas(spec.replicas, spec.ranks, 0).count;
  Room room{.residuals = run.count,
            .wholes = std::min(run.count, turns - 1),
            .plain_floats = layout.plain_floats + layout.left_floats,
            .own_bytes = run.count * layout.message_bytes,
            .all_bytes = spec.replicas * layout.message_bytes};
  room.plain_sum = room.basis_sum = {.run = run, .reproducible = spec.reproducible};
  if (run.count < turns) room.plain_sum.last_leaf = LastLeaf::leaves;
  room.plain_sum.count = room.plain_floats;
  room.basis_sum.count = layout.basis_floats;
  for (const CompressedTensor& tensor : layout.tensors) {
    room.columns = std::max(room.columns, tensor.left.count);
    if (spec.compression.kind == Compression::top_k) room.sorted = std::max(room.sorted, tensor.gradient.count);
  }
  if (spec.compression.kind == Compression::two_bits) room.counts = counted_at_once;
  return room;
}

bool all_finite(const float* values, Index n) {
  return std::all_of(values, values + n, [](float value) { return std::isfinite(value); });
}

bool is_zero(const float* values, Index n) {
  return std::all_of(values, values + n, [](float value) { return value == 0; });
}

}  // namespace

Index compression_floats(const SyncSpec& spec, const ParameterTable& table) {
  if (!spec.compression.is_on()) return 0;
  const CompressionLayout layout = compression_layout(table, spec.compression);
  const Room room = room_of(spec, layout);
  Index floats = (room.residuals + room.wholes) * layout.residual_floats + 2 * layout.basis_floats +
                 room.plain_floats * (1 + ReplicaSum::slots(room.plain_sum));
  if (layout.basis_floats > 0) floats += layout.basis_floats * ReplicaSum::slots(room.basis_sum);
  return floats + (room.own_bytes + room.all_bytes) / 4 + room.sorted + room.counts + 2 * room.columns;
}

CompressedSum::CompressedSum(const SyncSpec& spec, const SyncParts& parts)
    : spec_(spec.compression),
      parts_(parts),
      layout_(compression_layout(parts.plan.table, spec.compression)),
      replicas_(spec.replicas),
      run_(deal_replicas(spec.replicas, spec.ranks, spec.rank)) {
  const Room room = room_of(spec, layout_);
  plain_count_ = room.plain_floats;
  plain_ = parts.backend.allocate(plain_count_);
  plain_sum_.emplace(parts.backend, parts.collectives, room.plain_sum, plain_);
  for (int i = 0; i < room.residuals; ++i)
    residuals_.push_back({parts.backend.allocate(layout_.residual_floats), layout_.residual_floats});
  for (int i = 0; i < room.wholes; ++i) wholes_.push_back(parts.backend.allocate(layout_.residual_floats));
  if (spec_.kind == Compression::power_sgd) {
    bases_ = parts.backend.allocate(layout_.basis_floats);
    next_bases_ = parts.backend.allocate(layout_.basis_floats);
    basis_sum_.emplace(parts.backend, parts.collectives, room.basis_sum, next_bases_);
  }
  for (int rank = 0; rank < spec.ranks; ++rank)
    message_bytes_.push_back(
        static_cast<int>(deal_replicas(replicas_, spec.ranks, rank).count * layout_.message_bytes));
  own_.resize(static_cast<std::size_t>(room.own_bytes));
  all_.resize(static_cast<std::size_t>(room.all_bytes));
  scratch_.resize(static_cast<std::size_t>(room.sorted));
  counts_.resize(static_cast<std::size_t>(room.counts));
  columns_.resize(static_cast<std::size_t>(room.columns));
}

LowRank CompressedSum::shape_of(const CompressedTensor& tensor) const {
  return {tensor.rows, tensor.columns, spec_.rank};
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
    const float* const kept = residual(own) + tensor.residual.begin;
    for (Index i = 0; i < tensor.gradient.count; ++i) sum[i] = kept[i] + gradient[i];
    if (spec_.kind == Compression::power_sgd)
      multiply_by_basis(shape_of(tensor), sum, bases_ + tensor.basis.begin,
                        plain_ + layout_.plain_floats + tensor.left.begin);
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
      float* const to = residual(own) + tensor.residual.begin;
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
  fill_first_bases(layout_, bases_);
  spoil_gradients();
  parts_.gradients[parts_.plan.table.flags.begin] = 1;
}

bool CompressedSum::is_finite() const {
  const Range& flags = parts_.plan.table.flags;
  return is_zero(parts_.gradients + flags.begin, flags.count);
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
  if (spec_.kind == Compression::power_sgd)
    exchange_factors();
  else
    exchange_messages(static_cast<float>(spec_.threshold * static_cast<double>(scale)));
}

void CompressedSum::exchange_messages(float threshold) {
  const auto each = static_cast<std::size_t>(layout_.message_bytes);
  {
    const TraceSpan span("compression");
    keep();
    for (std::size_t i = 0; i < residuals_.size(); ++i) write_message(residual(i), own_.data() + i * each, threshold);
  }
  parts_.collectives.gather(own_, all_, message_bytes_, "compressed gradients");
  const TraceSpan span("sum of compressed gradients");
  for (const CompressedTensor& tensor : layout_.tensors) {
    if (spec_.kind == Compression::two_bits)
      add_two_bits_of_all(tensor, threshold);
    else
      std::fill_n(parts_.gradients + tensor.gradient.begin, tensor.gradient.count, 0.0F);
  }
  if (spec_.kind == Compression::top_k)
    for (std::size_t replica = 0; replica < static_cast<std::size_t>(replicas_); ++replica)
      add_message(all_.data() + replica * each);
}

void CompressedSum::write_message(float* residual, std::byte* message, float threshold) {
  for (const CompressedTensor& tensor : layout_.tensors) {
    float* const values = residual + tensor.residual.begin;
    std::byte* const to = message + tensor.message.begin;
    if (spec_.kind == Compression::two_bits) {
      take_two_bits(values, tensor.gradient.count, threshold, reinterpret_cast<std::uint8_t*>(to));
      continue;
    }
    auto* const places = reinterpret_cast<std::uint32_t*>(to);
    take_largest(values, tensor.gradient.count, tensor.kept, places, reinterpret_cast<float*>(places + tensor.kept),
                 scratch_.data());
  }
}

void CompressedSum::add_message(const std::byte* message) {
  for (const CompressedTensor& tensor : layout_.tensors) {
    const auto* const places = reinterpret_cast<const std::uint32_t*>(message + tensor.message.begin);
    const auto* const largest = reinterpret_cast<const float*>(places + tensor.kept);
    float* const to = parts_.gradients + tensor.gradient.begin;
    for (Index i = 0; i < tensor.kept; ++i) to[places[i]] += largest[i];
  }
}

/// Whole numbers add up exactly, in any order.
void CompressedSum::add_two_bits_of_all(const CompressedTensor& tensor, float threshold) {
  for (Index begin = 0; begin < tensor.gradient.count; begin += counted_at_once) {
    const Index n = std::min(counted_at_once, tensor.gradient.count - begin);
    std::fill_n(counts_.begin(), n, 0);
    for (Index replica = 0; replica < replicas_; ++replica)
      add_two_bits(reinterpret_cast<const std::uint8_t*>(all_.data()) + replica * layout_.message_bytes +
                       tensor.message.begin + begin / 4,
                   n, counts_.data());
    float* const to = parts_.gradients + tensor.gradient.begin + begin;
    for (Index i = 0; i < n; ++i) to[i] = threshold * static_cast<float>(counts_[static_cast<std::size_t>(i)]);
  }
}

void CompressedSum::exchange_factors() {
  float* const lefts = plain_ + layout_.plain_floats;
  {
    const TraceSpan span("compression");
    for (const CompressedTensor& tensor : layout_.tensors)
      make_orthonormal(shape_of(tensor), lefts + tensor.left.begin, columns_.data());
    keep();
    for (int i = 0; i < run_.count; ++i) {
      float* const own = residual(static_cast<std::size_t>(i));
      for (const CompressedTensor& tensor : layout_.tensors) {
        const LowRank shape = shape_of(tensor);
        const float* const left = lefts + tensor.left.begin;
        float *const values = own + tensor.residual.begin, *const basis = next_bases_ + tensor.basis.begin;
        multiply_by_left(shape, values, left, basis);
        add_product(shape, -1, left, basis, values);
      }
      basis_sum_->add(run_.first + i, {0, layout_.basis_floats});
    }
  }
  parts_.collectives.finish(basis_sum_->reduce({0, layout_.basis_floats}, "right factors of the gradients"));
  parts_.collectives.await(parts_.backend.record(), "right factors of the gradients");
  // All ranks have the same bits of the sum. Left factors that are not finite make right ones that aren't.
  for (const CompressedTensor& tensor : layout_.tensors)
    if (!all_finite(next_bases_ + tensor.basis.begin, tensor.basis.count)) return begin_anew();
  const TraceSpan span("sum of compressed gradients");
  for (const CompressedTensor& tensor : layout_.tensors) {
    float* const to = parts_.gradients + tensor.gradient.begin;
    std::fill_n(to, tensor.gradient.count, 0.0F);
    add_product(shape_of(tensor), 1, lefts + tensor.left.begin, next_bases_ + tensor.basis.begin, to);
    // Only the directions of rows count: with their lengths, P would grow as the square of the gradient. A row that has
    // become 0 would stay so, and the rank would be lower for ever.
    for (Index at = 0; at < tensor.basis.count; at += tensor.columns) {
      float* const row = next_bases_ + tensor.basis.begin + at;
      if (!scale_to_one(row, tensor.columns)) fill_basis_row(tensor, at / tensor.columns, row);
    }
  }
  std::copy_n(next_bases_, layout_.basis_floats, bases_);
}

}  // namespace convoy
