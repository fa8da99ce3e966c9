// SPDX-License-Identifier: Apache-2.0
// Everything that runs a network on this rank: backend, plan, compiled programs and the memory they share.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "comm/collectives.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/hash.hpp"
#include "core/types.hpp"
#include "data/dataset.hpp"

namespace convoy {

/// Programs for one image size. Input sizes may differ between training and evaluation before the crop.
struct ProgramSizes {
  InputSpec input, eval_input;
  Index height = 0, width = 0;         ///< of the network input
  std::vector<Index> train_sizes;      ///< samples a program takes; the first is the usual one. Empty: no training
  Index eval_size = 0;                 ///< 0: no evaluation
  std::vector<float> class_weights;    ///< of the training loss; empty: all are 1
  ImageSize eval_crop;                 ///< of the network input in evaluation; 0: height x width
  std::vector<ImageSize> eval_shapes;  ///< rectangular evaluation: an input size each; empty: height x width
};

/// What a rank may use, in bytes, and how messages call it; 0: not known.
struct MemoryLimit {
  double bytes = 0;
  std::string name;  ///< `the 16.0 GB of this host for 2 ranks`
};

struct EngineSpec {
  DeviceConfig device;
  PlanSpec plan;
  OptimiserSpec optimiser;
  std::vector<ProgramSizes> sizes;  ///< the first is what a run begins with; at least one
  /// Floats that sets with this layout, and what belongs to them, take in the memory of the device; empty: one set.
  std::function<Index(const SetLayout&, const ParameterTable&)> set_floats = {};
  Index sample_bytes = 0;  ///< that this rank keeps in the memory of its host
  int topk = 5;
  int node_rank = 0, node_size = 1;
  std::optional<MemoryLimit> memory;  ///< without it the engine asks memory_of(), for node_size ranks
  Index arena_limit = 0;              ///< CompileSpec's; the engine fills it in
  std::string choices;                ///< of the usual training program, from a checkpoint; empty: choose
  std::string choices_device;         ///< Backend::describe where they were made
};

/// What to compile for training; the caller sets samples, choices and tuning.
CompileSpec training_spec(const EngineSpec& spec, const ProgramSizes& sizes);
/// What to compile for evaluation, a program a shape; `to` is the training program's. Empty without evaluation.
std::vector<CompileSpec> evaluation_specs(const ProgramSizes& sizes, CompileSpec to);

/// Keeps the host at most two launches (turns, batches of an evaluation) ahead of the device. The wait for one that
/// hangs, since a rank died within a sum, happens here under the deadline, and not inside a driver whose queue is full.
class InFlightLimit {
 public:
  InFlightLimit(Device& device, Collectives& collectives) : device_(device), collectives_(collectives) {}

  /// Call it after each launch: it waits for the one before the last.
  void launched(const char* what) {
    collectives_.await(std::exchange(ends_[turn_], device_.record()), what);
    turn_ = 1 - turn_;
  }

 private:
  Device& device_;
  Collectives& collectives_;
  std::array<Event, 2> ends_{};
  std::size_t turn_ = 0;
};

/// What makes two launches the same for Backend::replay: the program (by training phase and samples), the replica whose
/// slots they use, and the stage.
struct ReplayKey {
  static constexpr std::uint64_t all_stages = ~std::uint64_t{0};

  std::uint64_t phase = 0;
  Index samples = 0;
  int replica = -1;
  std::uint64_t stage = all_stages;

  /// Of a batch of an evaluation; `shape` is which of eval_shapes.
  static ReplayKey of_evaluation(std::size_t phase, std::size_t shape, const ParameterSet& set) {
    constexpr int evaluates = -2;
    return {phase, static_cast<Index>(shape), evaluates, reinterpret_cast<std::uintptr_t>(set.block)};
  }
  ReplayKey of_stage(std::uint64_t number) const { return {phase, samples, replica, number}; }
  std::uint64_t hash() const {
    std::uint64_t hash = 0;
    for (const std::uint64_t part :
         {phase, static_cast<std::uint64_t>(samples), static_cast<std::uint64_t>(replica), stage})
      hash = mix_bits(hash + part + 0x9e3779b97f4a7c15ULL);
    return hash;
  }
};

class Engine {
 public:
  /// Compiles the programs of all phases and allocates their shared arena, so that a phase begins without delay. Talks
  /// to no other rank. `chosen`: what make_backend said. Throws Error(device) where the programs differ in stages().
  Engine(const Graph& graph, const EngineSpec& spec, std::unique_ptr<Backend> backend, std::string chosen);

  Backend& backend() { return *backend_; }
  const Plan& plan() const { return plan_; }
  const SetLayout& layout() const { return layout_; }
  Program& training(Index samples, std::size_t phase = 0) { return *training_.at({phase, samples}); }
  bool trains() const { return !training_.empty(); }
  /// The same for every training program.
  std::span<const ReadyRange> stages() const { return training_.begin()->second->stages(); }
  /// Puts a training batch where the key's program finds it; nothing where the key has no samples.
  void feed(const ReplayKey& key, const Batch& batch);
  /// Launches a stage of the key's program, or replays it. Without samples the gradients are zeros.
  void launch(const ReplayKey& key, std::size_t stage, const ParameterSet& set);
  /// `shape`: which of eval_shapes.
  Program& evaluation(std::size_t phase = 0, std::size_t shape = 0) { return *evaluation_.at({phase, shape}); }
  /// What recomputation does to the usual training program; empty where it is off.
  std::string recomputation() const;
  Updater& updater() { return *updater_; }
  float* gradients() { return gradients_; }
  const std::string& choices() const { return choices_; }
  const std::string& chosen_device() const { return chosen_; }
  /// Threads that a rank computes with on a CPU.
  int threads() const { return threads_; }

  /// A new set: initial values, zero optimiser state, running mean 0 and variance 1, the first loss scale.
  std::vector<float> initial_set(std::uint64_t seed) const;
  /// A loaded set takes this run's loss scale where that is fixed, and where the set's is 1, which is what runs of
  /// other precisions have. The same run goes on with its own.
  void adopt_loss_scale(std::vector<float>& set) const;
  /// Copies between a set and host memory; host waits. `set` and `host` have layout().count() floats.
  void upload(const ParameterSet& set, const std::vector<float>& host, Collectives& collectives);
  std::vector<float> download(const ParameterSet& set, Collectives& collectives);
  /// The same into memory that is used again.
  void download(const ParameterSet& set, std::vector<float>& host, Collectives& collectives);

 private:
  std::unique_ptr<Backend> backend_;
  std::string chosen_, choices_;
  int threads_ = 0;
  Plan plan_;
  SetLayout layout_;
  void compile(const EngineSpec& spec, const ProgramSizes& sizes, std::size_t phase);
  /// All that the programs share, beside `others` (floats). What the memory can't hold is an error before a host kills
  /// the process.
  void allocate(const EngineSpec& spec, Index others);
  std::map<std::pair<std::size_t, Index>, std::unique_ptr<Program>> training_;          ///< by phase and samples
  std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<Program>> evaluation_;  ///< by phase and shape
  std::unique_ptr<Updater> updater_;
  float* gradients_ = nullptr;
  Index arena_floats_ = 0;
  LossScale loss_scale_;
  Recompute recompute_ = Recompute::off;
  MemoryLimit memory_;
  std::pair<std::size_t, Index> usual_;  ///< key of the usual training program
};

/// Collective. The engines of all ranks. Where kernels are measured, rank 0 measures and its choices hold for all;
/// choices of another device than all ranks have are made anew. Throws AgreedError.
std::unique_ptr<Engine> make_engine(Communicator& communicator, const Graph& graph, EngineSpec spec);

}  // namespace convoy
