// SPDX-License-Identifier: Apache-2.0
// Golden values written by tests/golden/make_golden.py, which says what a file holds.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "network/models.hpp"
#include "support/reference/operations.hpp"

namespace convoy {

/// What is stored of a tensor.
struct GoldenTensor {
  double norm = 0, projection = 0;
  std::vector<double> entries;
};
/// EXPECTs that `values` is this tensor, to `tolerance` of `size`; default: of its norm.
void expect_golden(const GoldenTensor& golden, const std::string& name, const reference::Values& values,
                   double tolerance, std::optional<double> size = {});

struct GoldenOperation {
  std::string name;
  Attributes attributes;
  reference::Tensor x, other, y;  ///< shapes; other: the second input, where there is one
  bool running = false;           ///< batch norm with running statistics
  std::map<std::string, GoldenTensor> results;
};
struct GoldenLoss {
  std::string name;
  Loss loss;
  Index n = 0, classes = 0;
  bool mixed = false;
  double scale = 1;
  std::vector<float> class_weights;  ///< empty: all are 1
  std::map<std::string, GoldenTensor> results;
};
std::vector<GoldenOperation> load_golden_operations();
std::vector<GoldenLoss> load_golden_losses();

/// Some steps with two tensors: weights `a` with decay, biases `b` without and with twice the rate.
struct GoldenOptimiser {
  std::string name;
  OptimiserSpec spec;
  OptionValues options;
  float decay = 0;
  std::vector<Index> shape{40};   ///< of `a`
  std::vector<float> rates;       ///< the learning rate of each step
  std::set<std::size_t> skipped;  ///< steps whose gradients are not finite
  std::map<std::string, GoldenTensor> results;
  /// Each step rounds the weights twice, to 2^-24 of them.
  double tolerance() const { return 1e-7 * static_cast<double>(rates.size()); }
};
std::vector<GoldenOptimiser> load_golden_optimisers();
/// The two tensors, without a network around them, and 3 flags.
Plan golden_optimiser_plan(const GoldenOptimiser& golden);

struct GoldenBatch {
  std::map<std::string, GoldenTensor> results, gradients, statistics;
};
struct GoldenNetwork {
  GraphSpec graph;
  Index n = 0;
  bool mixed = false;
  StepParams step;  ///< where the network drops values
  std::vector<GoldenBatch> batches;
};
/// `name`: of the file, `resnet50`.
GoldenNetwork load_golden_network(const std::string& name);

/// Training steps with momentum SGD, from the formula's weights; the batches are x0, x1 ...
struct GoldenSteps {
  GoldenNetwork network;  ///< without batches
  std::vector<float> rates;
  float momentum = 0, decay = 0;
  std::vector<double> losses;      ///< the mean of each step
  std::vector<double> changes;     ///< projections of what was added to each trainable parameter, in the order of names
  std::vector<double> statistics;  ///< projections of the running statistics, in the order of names
};
GoldenSteps load_golden_steps(const std::string& model);

}  // namespace convoy
