// SPDX-License-Identifier: Apache-2.0
// When and what the replicas of a job average. sync decides, comm moves bytes.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "core/compression.hpp"
#include "core/replicas.hpp"

namespace convoy {

enum class SyncMode : std::uint8_t { gradients, weights };
enum class MomentumPolicy : std::uint8_t { keep, average, reset };

/// The weights after an average. average: the average itself. Else the change since the last average is a gradient, and
/// the outer optimiser takes a step with momentum (SlowMo) or Nesterov momentum (DiLoCo).
enum class OuterRule : std::uint8_t { average, momentum, nesterov };
struct OuterSpec {
  OuterRule rule = OuterRule::average;
  double rate = 1, momentum = 0.5;
  bool is_on() const { return rule != OuterRule::average; }
};

/// Two levels of averages: replicas of a group, which lie on one host, average among themselves more often than all do.
struct GroupSpec {
  Index steps = 0;   ///< between two averages of a group; 0: there are none
  int replicas = 0;  ///< of a group: [0, replicas), [replicas, 2 * replicas), ...
  bool is_on() const { return steps > 0; }
};

struct SyncSpec {
  SyncMode mode = SyncMode::weights;
  Index local_steps = 1;  ///< weights: average every H steps
  Index local_start = 0;  ///< post-local SGD: before this step average after every step
  MomentumPolicy momentum = MomentumPolicy::keep;
  OuterSpec outer;  ///< weights: from local_start on
  GroupSpec group;  ///< weights
  /// weights: an average travels beside the steps of the next period, and reaches the replicas at its end. Sets then
  /// have a slot more, the last: what a replica's weights are still to be corrected by.
  bool overlap = false;
  bool reproducible = false;
  Wire wire = Wire::fp32;  ///< in what gradients, or changes of weights, travel; all else stays fp32
  /// gradients: what a replica sends in their place.
  CompressionSpec compression;
  int replicas = 1, ranks = 1, rank = 0;
};

// What a policy means for the rest of the program, before there is a Sync: nobody else asks for its mode.

/// Gradients are summed in every step.
SyncSpec gradient_sums(int replicas, int ranks, int rank);
/// `gradients`, `weights every 3 steps`.
std::string describe(const SyncSpec& spec);
/// A sentence for users of other programs.
std::string explain(const SyncSpec& spec);
/// Sets that a rank with so many replicas keeps.
int parameter_sets(const SyncSpec& spec, int replicas);
/// Floats of the outer optimiser on every rank, or of the anchor that weights in 16 bits need; 0: there is neither.
Index outer_floats(const SyncSpec& spec, const SetLayout& layout);
/// Floats, or as many bytes by four, that this rank keeps to compress its replicas' gradients; 0: none.
Index compression_floats(const SyncSpec& spec, const ParameterTable& table);
/// Floats in which this rank adds up what its replicas contribute to sums and averages.
Index sum_floats(const SyncSpec& spec, const SetLayout& layout, const ParameterTable& table);
/// All of these: what make_sync allocates beside parameter_sets().
Index sync_floats(const SyncSpec& spec, const SetLayout& layout, const ParameterTable& table);
/// What a checkpoint notes of the policy: steps between two averages, 0 where all replicas share one set.
Index local_steps_of_checkpoint(const SyncSpec& spec);
/// `gradients` or `weights`: the policy that wrote a checkpoint with that number.
std::string policy_of_checkpoint(Index local_steps);
/// The ranks that sum for a group: those of one number have a communicator of their own. A rank whose replicas are part
/// of a group shares it; others average whole groups, or nothing, alone.
int group_of_rank(const SyncSpec& spec);
/// Where the gradients are when they are compressed: in memory that the host reads on all ranks, or in a GPU's on some.
enum class GradientMemory : std::uint8_t { host, device };
/// Throws Error(usage) if gradients can't be compressed: between averages of weights, or on a GPU.
void check_compression(Compression kind, SyncMode mode, GradientMemory memory);
/// The same, once the plan is known: messages must not be larger than MPI can say.
void check_messages(const SyncSpec& spec, const ParameterTable& table, GradientMemory memory);
/// Whose samples a batch norm in training takes its statistics from: its replica's, or all ranks' (--sync-bn).
enum class BatchNormSamples : std::uint8_t { of_replica, of_all };
/// Throws Error(usage) where the policy can't be, or not with synchronised batch norm.
void check(const SyncSpec& spec, BatchNormSamples norms);

/// What a Sync works with; all of it outlives the Sync.
struct SyncParts {
  Backend& backend;
  Collectives& collectives;
  const Plan& plan;
  SetLayout layout;  ///< of the parameter sets
  float* gradients;  ///< the plan's gradient block, which programs write
  /// Over the ranks that share this rank's group (group_of_rank), for sums of the group's replicas; null without
  /// groups.
  Collectives* group = nullptr;
};

class Sync {
 public:
  virtual ~Sync() = default;
  /// gradients: the one set; weights: the replica's own.
  virtual ParameterSet& set(int replica) = 0;
  /// All sets of this rank that hold a model: what a checkpoint is loaded into.
  virtual std::span<const ParameterSet> sets() const = 0;
  /// The outer optimiser's state, laid out as OuterLayout, with the same bits on all ranks; without memory: there is
  /// none. Weights that travel in 16 bits have it for its anchor. The loader of the sets fills it, too.
  virtual ParameterSet outer() const { return {}; }
  /// Compressed gradients: what each owned replica has not sent yet, and what all ranks share, laid out as
  /// CompressionLayout says; empty, and without memory: there is none. The loader of the sets fills them, too.
  virtual std::span<const ParameterSet> residuals() const { return {}; }
  virtual ParameterSet bases() const { return {}; }
  virtual float scale(Index replica_samples, Index step_samples) const = 0;
  /// True where nothing between the stages of this replica waits for the host, and a replay that skips ready and
  /// replica_done is right.
  virtual bool capturable(int replica) const = 0;
  /// Outside of any replay, before a replica's stages: what the host counts of them. `step_samples`: of all replicas.
  virtual void begin_replica(int replica, Index samples, Index step_samples) = 0;
  /// Collective. Once for every stage of every replica (replica -1: this rank has none at this turn; its block holds
  /// zeros).
  virtual void ready(std::size_t stage, const ReadyRange& ready, int replica) = 0;
  /// Collective. Launches the optimiser where this replica's update is due: weights: at once; gradients: after the sums
  /// of the rank's last replica. samples may be 0.
  virtual void replica_done(int replica, Index samples, Updater& optimiser) = 0;
  /// Collective. weights: average when due after this step.
  virtual void step_done(Index step) = 0;
  /// Collective. The model for evaluation and checkpoints; leaves the replicas alone. Same bits on all ranks.
  virtual ParameterSet& averaged() = 0;
  /// Collective. Its values and statistics alone: optimiser state and compute copies may be older.
  virtual const ParameterSet& averaged_weights() = 0;
  /// Every replica continues from the values and running statistics of `model`, which has the same bits on all ranks;
  /// optimiser states stay. Only where replicas_are_equal().
  virtual void adopt(const ParameterSet& model) = 0;
  /// weights: samples a replica has seen since the last average, owned replicas in order (checkpoint shards).
  virtual std::vector<Index> samples_since_average() const = 0;
  /// Collective. Restores the above, after the sets' contents.
  virtual void restore(const std::vector<Index>& samples_since_average) = 0;
  /// True right after an average, also with momentum keep: a replica's values are those of averaged().
  virtual bool values_are_current() const = 0;
  /// True where all replicas' sets hold the same values: always, or right after an average.
  virtual bool replicas_are_equal() const = 0;
  /// weights, overlap: asks for a digest of the average that is received next. It reads all weights.
  virtual void digest_next_average() {}
  /// The digest that was asked for, whose bits are the same on all ranks, in the step in which the average came and in
  /// the next one. Else nothing, on all ranks alike.
  virtual std::optional<std::uint64_t> received_digest() const { return std::nullopt; }
  /// True where a checkpoint needs a shard of each replica, since the replicas differ: between two averages, and always
  /// where each keeps a momentum of its own.
  virtual bool needs_shards() const = 0;
};

/// Collective. Allocates sets, slots and buffers once. In gradients mode the number of turns a step is the same on
/// every rank: max replicas of a rank; ranks with fewer pass -1.
std::unique_ptr<Sync> make_sync(const SyncSpec& spec, const SyncParts& parts);

}  // namespace convoy
