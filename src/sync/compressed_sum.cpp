// SPDX-License-Identifier: Apache-2.0
#include "sync/compressed_sum.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/trace.hpp"

namespace convoy {
namespace {

/// Values whose counts stay in a CPU's first cache while all replicas are added; a multiple of 4.
constexpr Index counted_at_once = 1 << 12;

Index largest_tensor(const CompressionLayout& layout) {
  Index largest = 0;
  for (const CompressedTensor& tensor : layout.tensors) largest = std::max(largest, tensor.gradient.count);
  return largest;
}

bool is_zero(const float* values, Index n) {
  return std::all_of(values, values + n, [](float value) { return value == 0; });
}

}  // namespace

CompressedSum::CompressedSum(const SyncSpec& spec, const SyncParts& parts, const ReplicaRun& run, int turns)
    : spec_(spec.compression),
      parts_(parts),
      layout_(compression_layout(parts.plan.table, spec.compression)),
      replicas_(spec.replicas),
      run_(run),
      plain_(parts.backend.allocate(layout_.plain_floats + layout_.left_floats)),
      plain_count_(layout_.plain_floats + layout_.left_floats),
      plain_sum_(parts.backend, parts.collectives,
                 {.run = run,
                  .reproducible = spec.reproducible,
                  .last_leaf = run.count == turns ? LastLeaf::stays : LastLeaf::leaves,
                  .leaf = plain_,
                  .count = plain_count_}) {
  if (!parts.backend.host_reads())
    fail(Exit::usage,
         "--wire {} is not possible on a GPU (the gradients are compressed on CPUs); use --wire bf16, or --device cpu",
         name_of(spec_.kind));
  for (int i = 0; i < run.count; ++i)
    residuals_.push_back({parts.backend.allocate(layout_.residual_floats), layout_.residual_floats});
  if (spec_.kind == Compression::power_sgd) {
    bases_ = parts.backend.allocate(layout_.basis_floats);
    next_bases_ = parts.backend.allocate(layout_.basis_floats);
    basis_sum_.emplace(parts.backend, parts.collectives,
                       ReplicaSumSpec{.run = run,
                                      .reproducible = spec.reproducible,
                                      .last_leaf = LastLeaf::stays,
                                      .leaf = next_bases_,
                                      .count = layout_.basis_floats});
    return;
  }
  const Index each = layout_.message_bytes, all = each * replicas_;
  if (all > std::numeric_limits<int>::max())
    fail(
        Exit::usage,
        "--wire {} is not possible: the messages of {} replicas are {} bytes, and every rank would hold more than 2 GB "
        "of them; use --wire powersgd or bf16, or fewer replicas",
        name_of(spec_.kind), replicas_, all);
  for (int rank = 0; rank < spec.ranks; ++rank)
    message_bytes_.push_back(static_cast<int>(deal_replicas(replicas_, spec.ranks, rank).count * each));
  own_.resize(static_cast<std::size_t>(run.count * each));
  all_.resize(static_cast<std::size_t>(all));
  if (spec_.kind == Compression::top_k) scratch_.resize(static_cast<std::size_t>(largest_tensor(layout_)));
  if (spec_.kind == Compression::two_bits) counts_.resize(static_cast<std::size_t>(counted_at_once));
}

LowRank CompressedSum::shape_of(const CompressedTensor& tensor) const {
  return {tensor.rows, tensor.columns, spec_.rank};
}

void CompressedSum::add(int replica) {
  const TraceSpan span("compression");
  float* const own = residual(static_cast<std::size_t>(replica - run_.first));
  const float* const block = parts_.gradients;
  parts_.collectives.await(parts_.backend.record(), "gradients to be compressed");
  float* to = plain_;
  for (const Range& range : layout_.plain) {
    std::copy_n(block + range.begin, range.count, to);
    to += align_floats(range.count);
  }
  if (block[parts_.plan.table.flags.begin + replica] == 0)
    for (const CompressedTensor& tensor : layout_.tensors)
      parts_.backend.add(own + tensor.residual.begin, block + tensor.gradient.begin, tensor.gradient.count);
  if (spec_.kind == Compression::power_sgd)
    for (const CompressedTensor& tensor : layout_.tensors)
      multiply_by_basis(shape_of(tensor), own + tensor.residual.begin, bases_ + tensor.basis.begin,
                        plain_ + layout_.plain_floats + tensor.left.begin);
  plain_sum_.add(replica, {0, plain_count_});
}

bool CompressedSum::is_finite() const {
  const Range& flags = parts_.plan.table.flags;
  return is_zero(parts_.gradients + flags.begin, flags.count);
}

void CompressedSum::reduce() {
  parts_.collectives.finish(plain_sum_.reduce({0, plain_count_}, "gradients that travel as they are"));
  parts_.collectives.await(parts_.backend.record(), "gradients that travel as they are");
  const float* from = plain_;
  for (const Range& range : layout_.plain) {
    std::copy_n(from, range.count, parts_.gradients + range.begin);
    from += align_floats(range.count);
  }
  if (!is_finite()) return;
  if (spec_.kind == Compression::power_sgd)
    exchange_factors();
  else
    exchange_messages();
}

void CompressedSum::exchange_messages() {
  const auto each = static_cast<std::size_t>(layout_.message_bytes);
  {
    const TraceSpan span("compression");
    for (std::size_t i = 0; i < residuals_.size(); ++i) write_message(residual(i), own_.data() + i * each);
  }
  parts_.collectives.gather(own_, all_, message_bytes_, "compressed gradients");
  const TraceSpan span("sum of compressed gradients");
  for (const CompressedTensor& tensor : layout_.tensors) {
    if (spec_.kind == Compression::two_bits)
      add_two_bits_of_all(tensor);
    else
      std::fill_n(parts_.gradients + tensor.gradient.begin, tensor.gradient.count, 0.0F);
  }
  if (spec_.kind == Compression::top_k)
    for (std::size_t replica = 0; replica < static_cast<std::size_t>(replicas_); ++replica)
      add_message(all_.data() + replica * each);
}

void CompressedSum::write_message(float* residual, std::byte* message) {
  for (const CompressedTensor& tensor : layout_.tensors) {
    float* const values = residual + tensor.residual.begin;
    std::byte* const to = message + tensor.message.begin;
    if (spec_.kind == Compression::two_bits) {
      take_two_bits(values, tensor.gradient.count, static_cast<float>(spec_.threshold),
                    reinterpret_cast<std::uint8_t*>(to));
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
void CompressedSum::add_two_bits_of_all(const CompressedTensor& tensor) {
  const auto threshold = static_cast<float>(spec_.threshold);
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
  const float* const lefts = plain_ + layout_.plain_floats;
  {
    const TraceSpan span("compression");
    for (const CompressedTensor& tensor : layout_.tensors)
      make_orthonormal(shape_of(tensor), plain_ + layout_.plain_floats + tensor.left.begin);
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
  const TraceSpan span("sum of compressed gradients");
  for (const CompressedTensor& tensor : layout_.tensors) {
    float* const to = parts_.gradients + tensor.gradient.begin;
    std::fill_n(to, tensor.gradient.count, 0.0F);
    add_product(shape_of(tensor), 1, lefts + tensor.left.begin, next_bases_ + tensor.basis.begin, to);
    // A row that has become 0 would stay so, and the rank would be lower for ever.
    for (Index at = 0; at < tensor.basis.count; at += tensor.columns) {
      float* const row = next_bases_ + tensor.basis.begin + at;
      if (is_zero(row, tensor.columns)) fill_basis_row(tensor, at / tensor.columns, row);
    }
  }
  std::copy_n(next_bases_, layout_.basis_floats, bases_);
}

}  // namespace convoy
