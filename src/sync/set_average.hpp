// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "sync/modes.hpp"
#include "sync/replica_sum.hpp"

namespace convoy {

/// 4 MB: while one range of a set travels the next is weighed, in cache.
inline constexpr Index averaged_floats = 1 << 20;
/// What a replica tells the others before an average.
inline constexpr Index report_floats = 8;

/// Significant bits of the largest share. Shares of 24 bits, as 1/3 rounded to a float, would round the products with
/// weights to one side: their last bits repeat a pattern. With 20 bits the mean error of an average is at most 1e-9 of
/// the weight, for 3 to 96 replicas; with 24 bits and a sum of 1 it is up to 1e-8.
inline constexpr int share_bits = 20;
/// shares[i] = parts[i] / sum(parts), in whole multiples of one power of two: they add up to exactly 1, so that
/// averages, of which a run has hundreds of thousands, neither grow nor shrink the weights. A share is less than 2^-19
/// of the largest one off. Equal parts whose number is a power of two have exact shares. `parts`: not negative, one of
/// them not 0.
void share_one(std::span<const double> parts, std::span<float> shares);

/// Floats that a SetAverage of these replicas allocates: its set, their reports, and the slots of their sums.
Index average_floats(const SyncSpec& spec, const SetLayout& layout, const ReplicaRun& run);

/// The weighted average of all replicas' parameter sets, in a set of its own; the replicas' sets are only read. Every
/// rank ends with the same bits, since every rank takes the one reduced sum. What is frozen is copied, not averaged.
/// The calls of one average: weigh (and weigh_one), take_values and take_optimiser in any number, finish.
class SetAverage {
 public:
  enum class Optimiser : std::uint8_t { keep, replace };

  /// Allocates the set and all buffers. `anchor`: weights that all ranks hold; then the differences from them travel,
  /// which are small and lose nothing that matters in 16 bits. Null: the weights themselves.
  SetAverage(const SyncSpec& spec, const SyncParts& parts, const ReplicaRun& run, const float* anchor);

  ParameterSet& set() { return set_; }
  const ParameterSet& set() const { return set_; }

  /// Collective. The weight of a replica is its share of all samples; a replica without samples has none. `sets`,
  /// `samples`: of the owned replicas in order. Also reads statistics and device state to the host. False, and weights
  /// as before: no replica has samples.
  bool weigh(std::span<const ParameterSet> sets, std::span<const Index> samples);
  /// Call it after weigh: takes values of replica 0 alone, which is exact where all hold the same; optimiser state of
  /// all alike.
  void weigh_one();
  /// The same, but takes all replicas alike.
  void weigh_alike();
  /// Collective. Starts the average of values and statistics, and takes the device state: lowest loss scale, most
  /// steps.
  void take_values(std::span<const ParameterSet> sets);
  /// Collective. Starts the average of the optimiser state.
  void take_optimiser(std::span<const ParameterSet> sets);
  /// Sets the optimiser state to zero; after take_values.
  void clear_optimiser();
  /// Collective. Launches queued after it see the average.
  void finish();
  /// to = the average, with or without its optimiser state. Compute copies are not refreshed.
  void copy_to(const ParameterSet& to, Optimiser optimiser);

 private:
  /// What a replica tells the others, in floats that are exact: samples / 4096, samples % 4096, device state.
  static constexpr Index state_floats = 5, samples_unit = 4096;

  const float* report(int replica) const { return &reports_[static_cast<std::size_t>(replica * report_floats)]; }
  void reduce_weighted(std::span<const ParameterSet> sets, const Range& range, std::span<const float> weights,
                       const char* what);
  /// What the replica adds to the sum of a piece. `anchor`: of the piece, or null.
  void contribute(const ParameterSet& set, const Range& piece, float weight, const float* anchor);
  /// What is frozen is the same in all sets, and stays: taken once.
  void take_frozen(std::span<const ParameterSet> sets);
  void take_state();
  void upload_state();
  void contribute_means();
  void contribute_spreads();
  void contribute_statistics(std::size_t row);

  int replicas_;  ///< of the job
  Wire wire_;
  const float* anchor_;  ///< of the values
  SyncParts parts_;
  ReplicaRun run_;
  Range report_range_;  ///< behind the set, in the same memory
  ParameterSet set_;    ///< also the leaf of every sum
  ReplicaSum sum_;
  std::vector<double> samples_;                     ///< of all replicas
  std::vector<float> weights_, optimiser_weights_;  ///< of all replicas
  std::vector<float> reports_;                      ///< of all replicas
  Ticket means_ = 0, last_ = 0;                     ///< last: of values and optimiser state
  bool statistics_pending_ = false, has_frozen_ = false, anchor_pending_ = false;  ///< anchor: the values lack it
  // Host memory of the owned replicas, one row each.
  std::vector<std::vector<float>> own_reports_, own_statistics_, contributions_;
  std::vector<float> statistics_, spreads_;  ///< averaged: means and variances; variances alone
  DeviceState state_{};
};

}  // namespace convoy
