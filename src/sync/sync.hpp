// SPDX-License-Identifier: Apache-2.0
// When and what the replicas of a job average. sync decides, comm moves bytes.
#pragma once
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "core/replicas.hpp"

namespace convoy {

enum class SyncMode : std::uint8_t { gradients, weights };
enum class MomentumPolicy : std::uint8_t { keep, average, reset };

struct SyncSpec {
  SyncMode mode = SyncMode::weights;
  Index local_steps = 1;  ///< weights: average every H steps
  Index local_start = 0;  ///< post-local SGD: before this step average after every step
  MomentumPolicy momentum = MomentumPolicy::keep;
  bool reproducible = false;
  int replicas = 1, ranks = 1, rank = 0;
};

class Sync {
 public:
  virtual ~Sync() = default;
  /// gradients: the one set; weights: the replica's own.
  virtual ParameterSet& set(int replica) = 0;
  virtual float scale(Index replica_samples, Index step_samples) const = 0;
  /// True where nothing between the stages of this replica waits for the host, and a replay that skips ready and
  /// replica_done is right.
  virtual bool capturable(int replica) const = 0;
  /// Outside of any replay, before a replica's stages: what the host counts of them.
  virtual void begin_replica(int replica, Index samples) = 0;
  /// Collective. Once for every stage of every replica (replica -1: this rank has none at this turn; its block holds
  /// zeros).
  virtual void ready(std::size_t stage, const ReadyRange& ready, int replica) = 0;
  /// Collective. weights: update; gradients, last replica of the rank: finish and update. samples may be 0.
  virtual void replica_done(int replica, Index samples) = 0;
  /// Collective. weights: average when due after this step.
  virtual void step_done(Index step) = 0;
  /// Collective. The model for evaluation and checkpoints; leaves the replicas alone. Same bits on all ranks.
  virtual ParameterSet& averaged() = 0;
  /// Collective. Its values and statistics alone: optimiser state and compute copies may be older.
  virtual const ParameterSet& averaged_weights() = 0;
  /// weights: samples a replica has seen since the last average, owned replicas in order (checkpoint shards).
  virtual std::vector<Index> samples_since_average() const = 0;
  /// Restores the above together with the sets' contents.
  virtual void restore(const std::vector<Index>& samples_since_average) = 0;
  /// True right after an average, also with momentum keep: a replica's values are those of averaged().
  virtual bool values_are_current() const = 0;
  /// True right after an average: no shards needed in a checkpoint. Never with momentum keep, where replicas still
  /// differ.
  virtual bool averages_are_current() const = 0;
};

/// Collective. `gradients`: the plan's gradient block that programs write. Allocates sets, slots and buffers once.
/// In gradients mode the number of turns a step is the same on every rank: max replicas of a rank; ranks with fewer
/// pass -1.
std::unique_ptr<Sync> make_sync(const SyncSpec& spec, Backend& backend, Collectives& collectives, const Plan& plan,
                                const OptimiserSpec& optimiser, Updater& updater, float* gradients);

}  // namespace convoy
