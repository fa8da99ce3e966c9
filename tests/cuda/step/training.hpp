// SPDX-License-Identifier: Apache-2.0
// A few whole steps of a small network on any backend: what two backends, or two ways of one, are compared by.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "network/models.hpp"

namespace convoy::cuda {

enum class Launching : std::uint8_t { direct, replayed };
/// Where images lie: any memory, or memory of the backend's that is copied from without waiting.
enum class Rows : std::uint8_t { pageable, pinned };
/// What is read back: everything, after the first step too; or the set, once all steps are queued.
enum class Reading : std::uint8_t { everything, set };

/// Whether the device has done each step before the next one is queued. Some forgotten waits show only where the host
/// is ahead, others only where it isn't.
enum class Pace : std::uint8_t { ahead, in_step };

struct TrainingSpec {
  GraphSpec model;
  Index batch = 4, image = 16;
  Precision precision = Precision::fp32;
  Tuning tuning = Tuning::rule;
  std::string options, choices;
  Recompute recompute = Recompute::off;
  Index arena_limit = 0;  ///< CompileSpec's
  int steps = 2;
  int draw = 0;  ///< of images and labels
  PlanSpec plan;
  OptimiserSpec optimiser;
  float rate = 0.05F;
  Launching launching = Launching::direct;
  Rows rows = Rows::pageable;
  Reading reading = Reading::everything;
  std::function<void(int)> before_step;  ///< and, with the number of steps, after the last
};

struct TrainingResult {
  Plan plan;
  SetLayout layout;
  std::vector<float> first_gradients, gradients;  ///< the block after the first and the last step
  std::vector<float> set;                         ///< after the last update
  std::vector<float> logits, loss;
  std::vector<float> evaluated;  ///< logits of the last batch by an evaluation program, with the updated set
  Counters counters;
  std::string description, choices;
  Index arena_floats = 0;  ///< of the training program
  Recomputation recomputation;
};

/// Initial values, images and labels by formula (support/formula.hpp): the same for all backends.
TrainingResult train(Backend& backend, const TrainingSpec& spec);

/// A small model of this name for `classes` = 10.
GraphSpec small_model(const std::string& name, const std::string& activation = "relu", const std::string& version = "");

/// The largest distance of a parameter's tensor in two blocks, as a share of its norm. Tensors that almost cancel (the
/// shift before another norm) are measured by the norm of their node's largest.
struct Distance {
  double share = 0;
  std::string name;
};
Distance distance(const ParameterTable& table, const std::vector<float>& found, const std::vector<float>& expected);
/// The same of whole vectors.
double distance(const std::vector<float>& found, const std::vector<float>& expected);

}  // namespace convoy::cuda
