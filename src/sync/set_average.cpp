// SPDX-License-Identifier: Apache-2.0
#include "sync/set_average.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace convoy {
namespace {

std::size_t slot(Index i) { return static_cast<std::size_t>(i); }

/// Behind the set.
Range report_range(const SyncSpec& spec, const SetLayout& layout) {
  return {align_floats(layout.count()), spec.replicas * report_floats};
}

/// How a rank adds what its replicas contribute.
ReplicaSumSpec sum_of(const SyncSpec& spec, const SetLayout& layout, const ReplicaRun& run) {
  return {.run = run, .reproducible = spec.reproducible, .count = report_range(spec, layout).end()};
}

}  // namespace

Index average_floats(const SyncSpec& spec, const SetLayout& layout, const ReplicaRun& run) {
  const ReplicaSumSpec sum = sum_of(spec, layout, run);
  return sum.count * (1 + ReplicaSum::slots(sum));
}

void share_one(std::span<const double> parts, std::span<float> shares) {
  double total = 0, largest = 0;
  for (const double part : parts) {
    total += part;
    largest = std::max(largest, part);
  }
  // The largest share lies in [2^(exponent - 1), 2^exponent).
  int exponent = 0;
  std::frexp(largest / total, &exponent);
  const double unit = std::ldexp(1.0, exponent - share_bits), units = 1 / unit;
  double before = 0, given = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    before += parts[i];
    // What one share lost to rounding goes to the next that has a part.
    const double own = parts[i] > 0 ? std::round(before / total * units) - given : 0;
    given += own;
    shares[i] = static_cast<float>(own * unit);
  }
}

SetAverage::SetAverage(const SyncSpec& spec, const SyncParts& parts, const ReplicaRun& run, const float* anchor)
    : replicas_(spec.replicas),
      wire_(spec.wire),
      anchor_(anchor),
      parts_(parts),
      run_(run),
      report_range_(report_range(spec, parts.layout)),
      set_{parts.backend.allocate(report_range_.end()), parts.layout.count()},
      sum_(parts.backend, parts.collectives, sum_of(spec, parts.layout, run), set_.block),
      samples_(slot(spec.replicas), 0.0),
      weights_(slot(spec.replicas), 0.0F),
      optimiser_weights_(weights_),
      reports_(slot(report_range_.count), 0.0F),
      own_reports_(slot(run.count), std::vector<float>(report_floats)),
      own_statistics_(slot(run.count), std::vector<float>(slot(parts.layout.moving.count))),
      contributions_(own_statistics_),
      statistics_(slot(parts.layout.moving.count)),
      spreads_(statistics_) {}

bool SetAverage::weigh(std::span<const ParameterSet> sets, std::span<const Index> samples) {
  constexpr const char* what = "samples since the last average";
  Backend& device = parts_.backend;
  const Event now = device.record();
  Event read;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const float* block = sets[i].block;
    const Index units = samples[i] / samples_unit;
    own_reports_[i][0] = static_cast<float>(units);
    own_reports_[i][1] = static_cast<float>(samples[i] % samples_unit);
    read = device.download(&own_reports_[i][2], block + parts_.layout.state.begin, state_floats, now);
    if (!own_statistics_[i].empty())
      read = device.download(own_statistics_[i].data(), block + parts_.layout.moving.begin, parts_.layout.moving.count,
                             read);
  }
  parts_.collectives.await(read, "states of the replicas");
  float* reports = set_.block + report_range_.begin;
  for (int i = 0; i < run_.count; ++i) {
    const int replica = run_.first + i;
    device.fill(reports, report_range_.count, 0.0F);
    device.upload(reports + replica * report_floats, own_reports_[slot(i)].data(), report_floats);
    sum_.add(replica, report_range_);
  }
  const Ticket all = sum_.reduce(report_range_, what);
  parts_.collectives.await(parts_.collectives.read(all, reports_.data(), reports, report_range_.count), what);

  for (int replica = 0; replica < replicas_; ++replica)
    samples_[slot(replica)] =
        static_cast<double>(report(replica)[0]) * samples_unit + static_cast<double>(report(replica)[1]);
  if (std::all_of(samples_.begin(), samples_.end(), [](double count) { return count == 0; })) return false;
  share_one(samples_, weights_);
  optimiser_weights_ = weights_;
  return true;
}

void SetAverage::weigh_one() {
  std::fill(weights_.begin(), weights_.end(), 0.0F);
  weights_.front() = 1;
  std::fill(samples_.begin(), samples_.end(), 1.0);
  share_one(samples_, optimiser_weights_);
}

void SetAverage::weigh_alike() {
  std::fill(samples_.begin(), samples_.end(), 1.0);
  share_one(samples_, weights_);
  optimiser_weights_ = weights_;
}

void SetAverage::take_values(std::span<const ParameterSet> sets) {
  take_state();
  take_frozen(sets);
  if (!statistics_.empty()) {
    contribute_means();
    means_ = sum_.reduce(parts_.layout.moving, "means of batch norm");
    statistics_pending_ = true;
  }
  reduce_weighted(sets, parts_.layout.trained, weights_, "average of weights");
  anchor_pending_ = anchor_ != nullptr;
}

void SetAverage::take_optimiser(std::span<const ParameterSet> sets) {
  reduce_weighted(sets, parts_.layout.optimiser, optimiser_weights_, "average of the optimiser state");
}

void SetAverage::clear_optimiser() {
  parts_.backend.fill(set_.block + parts_.layout.optimiser.begin, parts_.layout.optimiser.count, 0.0F);
  state_.slots_zeroed = state_.applied;
  upload_state();
}

void SetAverage::finish() {
  if (statistics_pending_) {
    // The variance of the union of the replicas' samples. E[x^2] is taken around the average mean, which is known by
    // now: around zero it would lose digits where a mean is large.
    const Range& range = parts_.layout.moving;
    float* statistics = set_.block + range.begin;
    Collectives& sums = parts_.collectives;
    sums.await(sums.read(means_, statistics_.data(), statistics, range.count), "means of batch norm");
    contribute_spreads();
    const Ticket variances = sum_.reduce(range, "variances of batch norm");
    sums.await(sums.read(variances, spreads_.data(), statistics, range.count), "variances of batch norm");
    for (const NormStatistics& norm : parts_.plan.table.norms)
      if (!norm.frozen)
        std::copy_n(&spreads_[slot(norm.variance.begin)], norm.variance.count, &statistics_[slot(norm.variance.begin)]);
    parts_.backend.upload(statistics, statistics_.data(), range.count);
    statistics_pending_ = false;
  }
  parts_.collectives.finish(std::exchange(last_, 0));
  if (!std::exchange(anchor_pending_, false)) return;
  const Range& values = parts_.layout.trained;
  parts_.backend.add(set_.block + values.begin, anchor_, values.count);
}

void SetAverage::copy_to(const ParameterSet& to, Optimiser optimiser) {
  const SetLayout& layout = parts_.layout;
  for (const Range& range : std::array{layout.trained, layout.optimiser, layout.moving, layout.state}) {
    if (range == layout.optimiser && optimiser == Optimiser::keep) continue;
    parts_.backend.copy(to.block + range.begin, set_.block + range.begin, range.count, 1.0F);
  }
}

void SetAverage::reduce_weighted(std::span<const ParameterSet> sets, const Range& range, std::span<const float> weights,
                                 const char* what) {
  // The optimiser state stays fp32: a second moment would be zero in fp16.
  const bool differs = anchor_ != nullptr && range == parts_.layout.trained;
  const Wire wire = range == parts_.layout.trained ? wire_ : Wire::fp32;
  for (Index begin = range.begin; begin < range.end(); begin += averaged_floats) {
    const Range piece{begin, std::min(averaged_floats, range.end() - begin)};
    for (int i = 0; i < run_.count; ++i) {
      contribute(sets[slot(i)], piece, weights[slot(run_.first + i)],
                 differs ? anchor_ + (begin - range.begin) : nullptr);
      sum_.add(run_.first + i, piece, wire);
    }
    last_ = sum_.reduce(piece, what, wire);
  }
}

void SetAverage::contribute(const ParameterSet& set, const Range& piece, float weight, const float* anchor) {
  Backend& device = parts_.backend;
  float* const leaf = set_.block + piece.begin;
  const float* const own = set.block + piece.begin;
  if (weight == 0) return device.fill(leaf, piece.count, 0.0F);
  if (anchor == nullptr) return device.copy(leaf, own, piece.count, weight);
  // Flat kernels that each round once: the same bits on every device.
  device.copy(leaf, own, piece.count, -1.0F);
  device.add(leaf, anchor, piece.count);
  device.copy(leaf, leaf, piece.count, -weight);
}

void SetAverage::take_frozen(std::span<const ParameterSet> sets) {
  if (has_frozen_ || sets.empty()) return;
  const SetLayout& layout = parts_.layout;
  const auto copy_rest = [&](const Range& all, const Range& trained) {
    const Index count = all.end() - trained.end();
    if (count > 0) parts_.backend.copy(set_.block + trained.end(), sets.front().block + trained.end(), count, 1.0F);
  };
  copy_rest(layout.values, layout.trained);
  copy_rest(layout.statistics, layout.moving);
  has_frozen_ = true;
}

void SetAverage::take_state() {
  // The most careful replica decides about the loss scale; of the counts the highest is taken.
  bool first = true;
  for (int replica = 0; replica < replicas_; ++replica) {
    if (weights_[slot(replica)] == 0) continue;
    DeviceState own{};
    std::memcpy(&own, report(replica) + 2, state_floats * sizeof(float));
    if (first) state_ = own;
    state_.loss_scale = std::min(state_.loss_scale, own.loss_scale);
    state_.good_steps = std::min(state_.good_steps, own.good_steps);
    state_.applied = std::max(state_.applied, own.applied);
    state_.skipped = std::max(state_.skipped, own.skipped);
    state_.slots_zeroed = std::max(state_.slots_zeroed, own.slots_zeroed);
    first = false;
  }
  upload_state();
}

void SetAverage::upload_state() {
  parts_.backend.upload(set_.block + parts_.layout.state.begin, reinterpret_cast<const float*>(&state_),
                        parts_.layout.state.count);
}

void SetAverage::contribute_means() {
  for (std::size_t row = 0; row < contributions_.size(); ++row) {
    const float weight = weights_[slot(run_.first) + row];
    for (const NormStatistics& norm : parts_.plan.table.norms)
      for (Index i = norm.mean.begin; !norm.frozen && i < norm.mean.end(); ++i)
        contributions_[row][slot(i)] = weight == 0 ? 0 : weight * own_statistics_[row][slot(i)];
    contribute_statistics(row);
  }
}

void SetAverage::contribute_spreads() {
  for (std::size_t row = 0; row < contributions_.size(); ++row) {
    const float weight = weights_[slot(run_.first) + row];
    for (const NormStatistics& norm : parts_.plan.table.norms)
      for (Index i = 0; !norm.frozen && i < norm.variance.count; ++i) {
        const std::size_t mean = slot(norm.mean.begin + i), variance = slot(norm.variance.begin + i);
        const float distance = own_statistics_[row][mean] - statistics_[mean];
        contributions_[row][variance] =
            weight == 0 ? 0 : weight * (own_statistics_[row][variance] + distance * distance);
      }
    contribute_statistics(row);
  }
}

void SetAverage::contribute_statistics(std::size_t row) {
  const Range& range = parts_.layout.moving;
  parts_.backend.upload(set_.block + range.begin, contributions_[row].data(), range.count);
  sum_.add(run_.first + static_cast<int>(row), range);
}

}  // namespace convoy
