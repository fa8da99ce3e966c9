// SPDX-License-Identifier: Apache-2.0
// The range test of Smith 2017 (arXiv 1506.01186): the learning rate rises exponentially, step by step, until the loss
// grows.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "optim/schedule.hpp"
#include "train/trial.hpp"

namespace convoy {

struct RangePoint {
  double rate = 0, loss = 0;  ///< of a step: the mean over its images, before its update
};

/// What a range test says. Of the loss, smoothed by smoothed_losses().
struct RangeFinding {
  /// Why `steepest` is no rate to suggest. scatter: no descent is 3.5 times the standard error that its slope has from
  /// the scatter of all losses. low_end, high_end: fewer than a tenth of all points lie on that side.
  enum class Doubt : std::uint8_t { none, scatter, low_end, high_end };
  Doubt doubt = Doubt::none;
  double steepest = 0;     ///< the learning rate where it falls fastest, over the logarithm of the rate
  double lowest_rate = 0;  ///< where it is lowest
  double lowest_loss = 0;
};

/// At each point the value of the straight line that fits the points around it best, a tenth of all to each side.
std::vector<double> smoothed_losses(const std::vector<RangePoint>& points);
/// Looks only at rates below the first at which the smoothed loss is 1.25 times its least.
/// Nothing: there are fewer than 10 points with finite losses, or the loss never falls.
std::optional<RangeFinding> find_rate(const std::vector<RangePoint>& points);

class RangeTest final : public Trial {
 public:
  /// The loss has diverged if its running mean is so many times its least.
  static constexpr double divergence = 4;

  explicit RangeTest(const RateRamp& ramp) : ramp_(ramp) {}

  /// Collective. As run_trial(), with the network, data and optimiser of a run.
  Exit run(Communicator& communicator, Supervisor& supervisor, const TrainConfig& whole);

  void begin(TrainingJob& job) override;
  void step_done(LoopState& state) override;
  bool bears_divergence() const override { return true; }

  // What was found, on all ranks.
  std::vector<RangePoint> points;
  bool diverged = false;
  Index global_batch = 0;

 private:
  void tell_progress(double rate, double loss) const;

  RateRamp ramp_;
  TrainingJob* job_ = nullptr;
  double mean_ = 0, least_ = 0;  ///< of the loss
};

}  // namespace convoy
