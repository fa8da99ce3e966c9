// SPDX-License-Identifier: Apache-2.0
// A program on a backend, with memory that shows what it does wrong, for comparison with the reference.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "support/reference/tensor.hpp"

namespace convoy {

/// A block of device memory between two guards, filled with NaN.
class FencedBlock {
 public:
  FencedBlock(Backend& backend, Index floats, const char* name);
  float* data() const { return data_; }
  Index count() const { return floats_; }
  void expect_guards() const;

 private:
  Backend& backend_;
  Index floats_;
  const char* name_;
  float* data_;
};

/// When all that was launched is done.
Counters take_counters(Backend& backend);
/// The first `n` floats of device memory.
std::vector<float> download(Backend& backend, const float* from, Index n);

/// A program compiled and bound, with a parameter set of its own.
class ProgramBench {
 public:
  /// `statistics`: running ones; null: zeros.
  ProgramBench(Backend& backend, const Plan& plan, const CompileSpec& spec, const reference::Values& values,
               const reference::Values* statistics = nullptr);
  Program& program() { return *program_; }
  /// Replaces samples, images and counts that `batch` leaves empty: all valid, norms over the own batch. `images`:
  /// those that samples name, any number.
  void feed(Batch batch, std::span<const std::uint8_t> images, std::span<const SampleSpec> samples);
  void launch(std::size_t stage) { program_->launch(stage, set_); }
  void launch_all();
  float* gradient_block() { return gradients_.data(); }
  /// As Backend::layout(plan, {}) lays it out.
  const ParameterSet& set() const { return set_; }
  std::vector<float> gradients() { return download(backend_, gradients_.data(), gradients_.count()); }
  std::vector<float> logits() { return download(backend_, program_->logits(), spec_.samples * classes_); }
  std::vector<float> loss() { return download(backend_, program_->loss_per_sample(), spec_.samples); }
  /// EXPECTs that guards and parameters stayed as they were.
  void expect_intact() const;

 private:
  Backend& backend_;
  CompileSpec spec_;
  Index classes_;
  std::unique_ptr<Program> program_;
  std::vector<float> block_;
  FencedBlock set_memory_, arena_, gradients_;
  ParameterSet set_;
  std::deque<std::vector<std::uint8_t>> rows_;  ///< of all batches fed: they must outlive their launch
};

struct BackendInput {
  CompileSpec spec;
  const reference::Values* values = nullptr;  ///< parameters, as plan.table lays them out
  std::span<const std::uint8_t> images;       ///< n h w c
  std::span<const SampleSpec> samples;
  float scale = 1;
  StepParams step = {};
};

struct BackendResult {
  std::vector<float> logits, loss;  ///< n x classes, n
  std::vector<float> gradients;     ///< the gradient block
  Counters counters;
  std::string description;
};

/// One training step: every stage launched once.
BackendResult run_on(Backend& backend, const Plan& plan, const BackendInput& input);

}  // namespace convoy
