// SPDX-License-Identifier: Apache-2.0
// 2bit and topk: every rank receives the messages of all replicas and adds them in the order of replicas.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/trace.hpp"
#include "sync/compressed_exchange.hpp"
#include "sync/compressors.hpp"

namespace convoy {
namespace {

class MessageSum : public CompressedExchange {
 public:
  MessageSum(const SyncSpec& spec, const SyncParts& parts, const CompressionLayout& layout)
      : parts_(parts), layout_(layout), replicas_(spec.replicas) {
    for (int rank = 0; rank < spec.ranks; ++rank)
      bytes_of_ranks_.push_back(
          static_cast<int>(deal_replicas(spec.replicas, spec.ranks, rank).count * layout.message_bytes));
    own_.resize(static_cast<std::size_t>(bytes_of_ranks_[static_cast<std::size_t>(spec.rank)]));
    all_.resize(static_cast<std::size_t>(replicas_ * layout.message_bytes));
  }

  static Index floats(const SyncSpec& spec, const CompressionLayout& layout) {
    return (deal_replicas(spec.replicas, spec.ranks, spec.rank).count + spec.replicas) * layout.message_bytes / 4;
  }

  void take(std::span<const ParameterSet> residuals, float scale) override {
    std::byte* message = own_.data();
    for (const ParameterSet& residual : residuals) {
      for (const CompressedTensor& tensor : layout_.tensors)
        write(tensor, residual.block + tensor.residual.begin, message + tensor.message.begin, scale);
      message += layout_.message_bytes;
    }
  }

  bool sum(float scale) override {
    parts_.collectives.gather(own_, all_, bytes_of_ranks_, "compressed gradients");
    const TraceSpan span("sum of compressed gradients");
    for (const CompressedTensor& tensor : layout_.tensors)
      sum_tensor(tensor, parts_.gradients + tensor.gradient.begin, scale);
    return true;
  }

 protected:
  Index replicas() const { return replicas_; }
  /// A replica's message about a tensor.
  const std::byte* message(Index replica, const CompressedTensor& tensor) const {
    return all_.data() + replica * layout_.message_bytes + tensor.message.begin;
  }

 private:
  /// Takes from a replica's values of a tensor what `to` then says.
  virtual void write(const CompressedTensor& tensor, float* values, std::byte* to, float scale) = 0;
  /// What the messages of all replicas say of a tensor.
  virtual void sum_tensor(const CompressedTensor& tensor, float* to, float scale) = 0;

  SyncParts parts_;
  const CompressionLayout& layout_;
  Index replicas_;
  std::vector<int> bytes_of_ranks_;
  std::vector<std::byte> own_, all_;  ///< messages of the rank's replicas, of all
};

class TwoBitMessages final : public MessageSum {
 public:
  TwoBitMessages(const SyncSpec& spec, const SyncParts& parts, const CompressionLayout& layout)
      : MessageSum(spec, parts, layout), threshold_(spec.compression.threshold) {
    counts_.resize(static_cast<std::size_t>(counted_at_once));
  }

  static Index floats(const SyncSpec& spec, const CompressionLayout& layout) {
    return MessageSum::floats(spec, layout) + counted_at_once;
  }

 private:
  /// Values whose counts stay in a CPU's first cache while all replicas are added; a multiple of 4.
  static constexpr Index counted_at_once = 1 << 12;

  float threshold(float scale) const { return static_cast<float>(threshold_ * static_cast<double>(scale)); }

  void write(const CompressedTensor& tensor, float* values, std::byte* to, float scale) override {
    take_two_bits(values, tensor.gradient.count, threshold(scale), reinterpret_cast<std::uint8_t*>(to));
  }

  /// Whole numbers add up exactly, in any order.
  void sum_tensor(const CompressedTensor& tensor, float* to, float scale) override {
    const float one = threshold(scale);
    for (Index begin = 0; begin < tensor.gradient.count; begin += counted_at_once) {
      const Index n = std::min(counted_at_once, tensor.gradient.count - begin);
      std::fill_n(counts_.begin(), n, 0);
      for (Index replica = 0; replica < replicas(); ++replica)
        add_two_bits(reinterpret_cast<const std::uint8_t*>(message(replica, tensor)) + begin / 4, n, counts_.data());
      for (Index i = 0; i < n; ++i) to[begin + i] = one * static_cast<float>(counts_[static_cast<std::size_t>(i)]);
    }
  }

  double threshold_;
  std::vector<std::int32_t> counts_;
};

class TopKMessages final : public MessageSum {
 public:
  TopKMessages(const SyncSpec& spec, const SyncParts& parts, const CompressionLayout& layout)
      : MessageSum(spec, parts, layout) {
    scratch_.resize(static_cast<std::size_t>(largest_tensor(layout)));
  }

  static Index floats(const SyncSpec& spec, const CompressionLayout& layout) {
    return MessageSum::floats(spec, layout) + largest_tensor(layout);
  }

 private:
  static Index largest_tensor(const CompressionLayout& layout) {
    Index largest = 0;
    for (const CompressedTensor& tensor : layout.tensors) largest = std::max(largest, tensor.gradient.count);
    return largest;
  }

  void write(const CompressedTensor& tensor, float* values, std::byte* to, float /*scale*/) override {
    auto* const places = reinterpret_cast<std::uint32_t*>(to);
    take_largest(values, tensor.gradient.count, tensor.kept, places, reinterpret_cast<float*>(places + tensor.kept),
                 scratch_.data());
  }

  void sum_tensor(const CompressedTensor& tensor, float* to, float /*scale*/) override {
    std::fill_n(to, tensor.gradient.count, 0.0F);
    for (Index replica = 0; replica < replicas(); ++replica) {
      const auto* const places = reinterpret_cast<const std::uint32_t*>(message(replica, tensor));
      const auto* const largest = reinterpret_cast<const float*>(places + tensor.kept);
      for (Index i = 0; i < tensor.kept; ++i) to[places[i]] += largest[i];
    }
  }

  std::vector<std::uint32_t> scratch_;
};

template <class Messages>
CompressionMethod method_of() {
  return {.floats = Messages::floats,
          .make = [](const SyncSpec& spec, const SyncParts& parts, const CompressionLayout& layout, float*)
              -> std::unique_ptr<CompressedExchange> { return std::make_unique<Messages>(spec, parts, layout); }};
}

}  // namespace

CompressionMethod two_bit_messages() { return method_of<TwoBitMessages>(); }
CompressionMethod top_k_messages() { return method_of<TopKMessages>(); }

}  // namespace convoy
