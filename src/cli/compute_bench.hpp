// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "config/config.hpp"
#include "sync/sync.hpp"
#include "train/engine.hpp"

namespace convoy {

/// One rank's replica of a training job on images in memory, stepping as the trainer does.
class ComputeBench {
 public:
  /// Collective.
  ComputeBench(Communicator& communicator, const BenchConfig& config);

  /// Collective where gradients are summed.
  void step(Index number);

  const Engine& engine() const { return *engine_; }
  const GraphSpec& model() const { return model_; }
  /// How the sums travel.
  const std::string& transport() const { return transport_; }
  double loss() const { return loss_; }
  double take_wait_seconds() { return collectives_->take_wait_seconds(); }

 private:
  void make_images(int rank);
  ParameterSet& set() { return sync_ ? sync_->set(rank_) : own_; }

  GraphSpec model_;
  std::unique_ptr<Engine> engine_;
  int rank_;
  Index batch_, step_samples_ = 0;
  std::vector<std::uint8_t> pixels_;
  std::vector<SampleSpec> samples_;
  std::string transport_;
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Sync> sync_;  ///< null: every rank trains alone
  ParameterSet own_;
  double loss_ = 0;
};

}  // namespace convoy
