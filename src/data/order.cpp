// SPDX-License-Identifier: Apache-2.0
#include "data/order.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/deal.hpp"
#include "core/errors.hpp"
#include "core/random.hpp"

namespace convoy {
namespace {

Index step_samples(const OrderSpec& spec) { return spec.replicas * spec.batch; }

/// Steps in which every replica has B samples. Both shuffles agree on it, and on all shares: the smallest range has
/// floor(samples / W) samples, and floor(floor(samples / W) / B) = floor(samples / (W B)).
Index full_steps(const OrderSpec& spec) {
  const Index steps = spec.samples / step_samples(spec);
  return spec.mode == EpochMode::resample ? std::max<Index>(steps, 1) : steps;
}

/// What is left for the one short step that ends an exact epoch: less than W B.
Index rest_of(const OrderSpec& spec) {
  return spec.mode == EpochMode::resample ? 0 : spec.samples - full_steps(spec) * step_samples(spec);
}

bool owns_ranges(const OrderSpec& spec) { return spec.shuffle != Shuffle::global; }

bool in_pieces(const OrderSpec& spec) {
  return spec.shuffle == Shuffle::buffered && spec.shuffled && spec.mode == EpochMode::exact;
}

void check(const OrderSpec& spec) {
  require(spec.replicas > 0 && spec.batch > 0, "an epoch needs replicas and a batch size");
  if (spec.samples <= 0) fail(Exit::data, "the training set is empty (0 samples); check --data and --train-fraction");
  require(spec.buffer > 0, "a buffer of samples");
  require(!spec.classes || (spec.samples == spec.classes->classes() * spec.classes->draws() && !owns_ranges(spec) &&
                            spec.mode == EpochMode::exact && spec.shuffled && spec.repeats == 1),
          "a balanced epoch is shuffled globally, with the same draws of each class");
  if (spec.samples > std::numeric_limits<std::int32_t>::max())
    fail(Exit::data, "{} samples are too many (the limit is 2^31 - 1); split the data set", spec.samples);
  if (spec.mode == EpochMode::resample && owns_ranges(spec) && spec.samples < spec.replicas)
    fail(
        Exit::usage,
        "cannot resample {} samples over {} replicas (some own none to draw from); use --epoch-mode exact, --shuffle global or fewer replicas",
        spec.samples, spec.replicas);
}

/// Fisher-Yates, drawing from the end.
void permute(std::int32_t* values, Index count, Random random) {
  for (Index i = count - 1; i > 0; --i) std::swap(values[i], values[random.below(i + 1)]);
}

/// A replica's range in pieces of one buffer (the last one of them is shorter): their order, then the samples of each.
void permute_pieces(std::int32_t* values, const Range& range, const OrderSpec& spec, std::uint64_t epoch, int replica) {
  const Index pieces = (range.count + spec.buffer - 1) / spec.buffer;
  std::vector<std::int32_t> order(static_cast<std::size_t>(pieces));
  std::iota(order.begin(), order.end(), 0);
  // The short piece stays last, so that all others begin at multiples of the buffer.
  const Index whole = range.count / spec.buffer;
  const auto stream = [&](Index piece) {
    return Random(spec.seed, Stream::shuffle, epoch,
                  static_cast<std::uint64_t>(replica) + (static_cast<std::uint64_t>(piece + 1) << 32U));
  };
  permute(order.data(), whole, stream(pieces));
  for (Index i = 0; i < pieces; ++i) {
    const Index begin = order[static_cast<std::size_t>(i)] * spec.buffer;
    const Index count = std::min(spec.buffer, range.count - begin);
    std::iota(values + i * spec.buffer, values + i * spec.buffer + count,
              static_cast<std::int32_t>(range.begin + begin));
    permute(values + i * spec.buffer, count, stream(i));
  }
}

/// Where the permutations of classes begin among the streams of replicas and pieces.
constexpr std::uint64_t first_class = std::uint64_t{1} << 63U;

/// What an epoch draws of class `c`: the numbers [epoch * n, (epoch + 1) * n) of an endless row of permutations.
void draw_class(const ClassLists& classes, Index c, const OrderSpec& spec, Index epoch, std::int32_t* to) {
  const auto list = classes.of(c);
  const auto size = static_cast<Index>(list.size()), n = classes.draws();
  std::vector<std::int32_t> permutation;
  Index round = -1;
  for (Index i = 0; i < n; ++i) {
    const Index number = epoch * n + i;
    if (number / size != round) {
      round = number / size;
      permutation.assign(list.begin(), list.end());
      permute(
          permutation.data(), size,
          {spec.seed, Stream::shuffle, static_cast<std::uint64_t>(round), first_class + static_cast<std::uint64_t>(c)});
    }
    to[i] = permutation[static_cast<std::size_t>(number % size)];
  }
}

/// The global permutation's place among the streams of replicas: one that no replica has.
constexpr std::uint64_t whole_space = ~std::uint64_t{0};

}  // namespace

ClassLists::ClassLists(std::span<const std::int32_t> labels) : samples_(static_cast<Index>(labels.size())) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    const auto label = static_cast<std::size_t>(labels[i]);
    if (label >= lists_.size()) lists_.resize(label + 1);
    lists_[label].push_back(static_cast<std::int32_t>(i));
  }
  std::erase_if(lists_, [](const auto& list) { return list.empty(); });
}

Index ClassLists::draws() const { return std::max<Index>(samples_ / std::max<Index>(classes(), 1), 1); }

EpochOrder::EpochOrder(const OrderSpec& spec, Index epoch, int first_replica, int replica_count)
    : spec_(spec), epoch_(epoch), first_(first_replica) {
  check(spec);
  if (!spec.shuffled || spec.mode == EpochMode::resample || replica_count == 0) return;
  const Range owned = sample_range(spec, first_replica, replica_count);
  permutation_.resize(static_cast<std::size_t>(owned.count));
  std::iota(permutation_.begin(), permutation_.end(), static_cast<std::int32_t>(owned.begin));
  const auto e = static_cast<std::uint64_t>(epoch);
  if (spec.classes) {
    permutation_.resize(static_cast<std::size_t>(spec.samples));
    const Index draws = spec.classes->draws();
    for (Index c = 0; c < spec.classes->classes(); ++c)
      draw_class(*spec.classes, c, spec, epoch, permutation_.data() + c * draws);
    permute(permutation_.data(), spec.samples, {spec.seed, Stream::shuffle, e, whole_space});
    return;
  }
  if (!owns_ranges(spec)) {
    permute(permutation_.data(), owned.count, {spec.seed, Stream::shuffle, e, whole_space});
    return;
  }
  for (int replica = first_replica; replica < first_replica + replica_count; ++replica) {
    const Range range = deal(spec.samples, spec.replicas, replica);
    if (in_pieces(spec)) {
      permute_pieces(permutation_.data() + (range.begin - owned.begin), range, spec, e, replica);
      continue;
    }
    permute(permutation_.data() + (range.begin - owned.begin), range.count,
            {spec.seed, Stream::shuffle, e, static_cast<std::uint64_t>(replica)});
  }
}

Index steps_of_epoch(const OrderSpec& spec) {
  check(spec);
  return full_steps(spec) + (rest_of(spec) > 0 ? 1 : 0);
}

Index EpochOrder::steps() const { return steps_of_epoch(spec_); }

Index EpochOrder::count(Index step, int replica) const {
  return step < full_steps(spec_) ? spec_.batch : deal(rest_of(spec_), spec_.replicas, replica).count;
}

Index EpochOrder::total(Index step) const { return step < full_steps(spec_) ? step_samples(spec_) : rest_of(spec_); }

Index EpochOrder::position(Index step, int replica, Index i) const {
  if (owns_ranges(spec_) && spec_.mode == EpochMode::exact)
    return deal(spec_.samples, spec_.replicas, replica).begin + step * spec_.batch + i;
  const Index before =
      step < full_steps(spec_) ? replica * spec_.batch : deal(rest_of(spec_), spec_.replicas, replica).begin;
  return step * step_samples(spec_) + before + i;
}

Index EpochOrder::sample(Index step, int replica, Index i) const {
  const Index place = position(step, replica, i);
  if (spec_.mode == EpochMode::resample) {
    const Range range = owns_ranges(spec_) ? deal(spec_.samples, spec_.replicas, replica) : Range{0, spec_.samples};
    if (!spec_.shuffled) return range.begin + (owns_ranges(spec_) ? step * spec_.batch + i : place) % range.count;
    Random random(spec_.seed, Stream::resample, static_cast<std::uint64_t>(epoch_), static_cast<std::uint64_t>(place));
    return range.begin + random.below(range.count);
  }
  if (!spec_.shuffled) return place;
  const Index base = owns_ranges(spec_) ? deal(spec_.samples, spec_.replicas, first_).begin : 0;
  const Index own = owns_ranges(spec_) ? deal(spec_.samples, spec_.replicas, replica).begin : 0;
  return permutation_.at(static_cast<std::size_t>(own - base + (place - own) / spec_.repeats));
}

Range EpochOrder::piece(int replica, Index first) const {
  const Range range = deal(spec_.samples, spec_.replicas, replica);
  if (!in_pieces(spec_) || first >= range.count) return {};
  const Index base = deal(spec_.samples, spec_.replicas, first_).begin;
  const auto values = permutation_.begin() + (range.begin - base + first);
  const Index count = std::min(spec_.buffer, range.count - first);
  return {*std::min_element(values, values + count), count};
}

Range sample_range(const OrderSpec& spec, int first_replica, int replica_count) {
  check(spec);
  if (replica_count == 0) return {};
  if (!owns_ranges(spec)) return {0, spec.classes ? spec.classes->samples() : spec.samples};
  const Index begin = deal(spec.samples, spec.replicas, first_replica).begin;
  return {begin, deal(spec.samples, spec.replicas, first_replica + replica_count - 1).end() - begin};
}

std::vector<Index> batch_sizes(const OrderSpec& spec) {
  check(spec);
  std::vector<Index> sizes;
  if (full_steps(spec) > 0) sizes.push_back(spec.batch);
  const Index rest = rest_of(spec);
  if (rest == 0) return sizes;
  for (const int replica : {0, spec.replicas - 1}) {  // the longest and the shortest share
    const Index share = deal(rest, spec.replicas, replica).count;
    if (share > 0 && (sizes.empty() || sizes.back() != share)) sizes.push_back(share);
  }
  return sizes;
}

}  // namespace convoy
