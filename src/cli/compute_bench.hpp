// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cli/step_profile.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"
#include "sync/sync.hpp"

namespace convoy {

/// Times of one rank, in seconds.
struct BenchTimes {
  double mean = 0, fastest = 0;  ///< fastest: of a GPU the fastest quarter's mean
  double wait = 0;               ///< of the host, for sums and for the device
  double cpu = 0;                ///< of the cores, a step
  double graph_launches = 0;     ///< a step
  Index allocations = 0;         ///< on the device, in all timed steps
};

/// One rank's replica of a training job on images in memory, stepping as the trainer does; or with --forward, a rank of
/// an evaluation.
class ComputeBench {
 public:
  /// Collective.
  ComputeBench(Communicator& communicator, const BenchConfig& config);

  /// Collective. Warm-up steps, then timed ones.
  BenchTimes run(Communicator& communicator, Index warmup, Index steps);
  /// Collective. Steps after those of run(), whose parts are timed: on a GPU launched one by one, not captured.
  StepProfile profile(Index steps, Precision precision);

  Engine& engine() const { return *engine_; }
  /// What a step runs.
  Program& program() const { return forward_ ? engine_->evaluation() : engine_->training(batch_); }
  const GraphSpec& model() const { return model_; }
  /// How the sums travel.
  const std::string& transport() const { return transport_; }
  double loss() const { return loss_; }

 private:
  /// How a step is launched: captured, if that is possible, or each part by itself.
  enum class Launch : std::uint8_t { replayed, eager };
  /// Collective where gradients are summed.
  void step(Index number, Launch launch = Launch::replayed);
  /// Waits for all steps.
  void settle();
  void make_images(int rank);
  ParameterSet& set() { return sync_ ? sync_->set(rank_) : own_; }

  GraphSpec model_;
  std::unique_ptr<Engine> engine_;
  int rank_;
  Index batch_, step_samples_ = 0;
  bool forward_;
  std::vector<std::uint8_t> pixels_;
  std::vector<SampleSpec> samples_;
  std::string transport_;
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Sync> sync_;  ///< null: every rank trains alone
  ParameterSet own_;
  int resident_ = -1;
  std::optional<InFlightLimit> in_flight_;
  double loss_ = 0;
  Index steps_done_ = 0;
};

}  // namespace convoy
