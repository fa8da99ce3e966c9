// SPDX-License-Identifier: Apache-2.0
// Which sample every replica takes at every step of an epoch: a pure function of (seed, epoch, replicas, batch), never
// of ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// partition: within each replica's range. buffered: the same in pieces of one buffer, which are read from front to
/// back: pieces in random order, samples in random order within a piece. global: all samples.
enum class Shuffle : std::uint8_t { partition, buffered, global };
enum class EpochMode : std::uint8_t { exact, resample };
/// classes: an epoch takes each class equally often.
enum class Balance : std::uint8_t { none, classes };

/// The samples of each class that has any, for balanced epochs.
class ClassLists {
 public:
  /// `labels`: of the samples from 0 on; -1: of no class, such samples are never drawn.
  explicit ClassLists(std::span<const std::int32_t> labels);
  Index samples() const { return samples_; }  ///< of the data set, those of no class included
  Index classes() const { return static_cast<Index>(lists_.size()); }
  std::span<const std::int32_t> of(Index i) const { return lists_[static_cast<std::size_t>(i)]; }
  /// Draws of each class in an epoch of about as many samples as there are.
  Index draws() const;

 private:
  Index samples_;
  std::vector<std::vector<std::int32_t>> lists_;
};

struct OrderSpec {
  Index samples = 0;  ///< of the data set (train fraction already applied)
  int replicas = 1;   ///< W
  Index batch = 0;    ///< B, of a replica
  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::partition;
  EpochMode mode = EpochMode::exact;
  Index buffer = 4096;                             ///< buffered: samples of a piece
  bool shuffled = true;                            ///< false: natural order (evaluation, tests)
  std::shared_ptr<const ClassLists> classes = {};  ///< balanced: `samples` is classes() * draws(), the shuffle global
  int repeats = 1;  ///< exact and shuffled: an epoch takes a part 1 / repeats of the samples, each so often in a row
};

/// The order of one epoch. Every step gives replicas shares that differ by at most one; all but an epoch's last steps
/// give every replica B. exact: each sample once; balanced, each class equally often: a class goes through its samples
/// in random order, again and again, over all epochs. resample: drawn with replacement, floor(samples / (W B)) full
/// steps (at least 1).
class EpochOrder {
 public:
  /// Computes only what the replicas [first, first + count) need.
  EpochOrder(const OrderSpec& spec, Index epoch, int first_replica, int replica_count);
  Index steps() const;
  Index count(Index step, int replica) const;  ///< samples of this replica at this step; may be 0
  Index total(Index step) const;               ///< over all replicas
  /// i-th sample of a replica's batch, in the global sample space.
  Index sample(Index step, int replica, Index i) const;
  /// Its position in the epoch: unique over replicas and steps, the key of its augmentation.
  Index position(Index step, int replica, Index i) const;
  /// buffered: the piece from which a replica takes samples `first` to first + buffer - 1 of its epoch, first being a
  /// multiple of the buffer; empty past the end.
  Range piece(int replica, Index first) const;

 private:
  OrderSpec spec_;
  Index epoch_;
  int first_;
  std::vector<std::int32_t> permutation_;  ///< global: of the space; partition: of the owned replicas' ranges
};

/// Steps of any epoch, which are counted and not ordered. Throws Error(usage) as EpochOrder does.
Index steps_of_epoch(const OrderSpec& spec);
/// The range of the global sample space that replicas [first, first + count) read: their shares, or all of it (global,
/// resample global).
Range sample_range(const OrderSpec& spec, int first_replica, int replica_count);
/// Distinct batch sizes that occur in an epoch, largest first (0 left out): programs to compile. The same on all ranks.
std::vector<Index> batch_sizes(const OrderSpec& spec);

}  // namespace convoy
