// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cpu/convolution.hpp"
#include "backend/cpu/step.hpp"

namespace convoy::cpu {

/// Forward, or the gradient with respect to the source.
class ConvolutionStep final : public Step {
 public:
  struct Spec {
    Range weight, bias;  ///< in the values block; bias may be empty
    Operand from, to, packed, scratch;
    Direction direction = Direction::forward;
  };
  ConvolutionStep(std::unique_ptr<ConvolutionKernel> kernel, const Spec& spec)
      : kernel_(std::move(kernel)), spec_(spec) {}
  void open(const Memory& memory) override;
  bool run(const Memory& memory, const Tile& tile) override;
  std::string describe() const override;

 private:
  std::unique_ptr<ConvolutionKernel> kernel_;
  Spec spec_;
};

/// The gradient with respect to weights and bias. The library overwrites: a thread's first tile goes straight into its
/// sum, the others are added; at the end the sums of the threads, in their order.
class WeightGradientStep final : public Step {
 public:
  struct Spec {
    Range weight, bias;  ///< in the gradient block; empty: not wanted
    Operand source, dy, sum, part, bias_sum, bias_part, scratch;
    Index bias_floats = 0;
  };
  WeightGradientStep(std::unique_ptr<ConvolutionKernel> kernel, const KernelTable& kernels, const Spec& spec)
      : kernel_(std::move(kernel)), kernels_(kernels), spec_(spec) {}
  bool run(const Memory& memory, const Tile& tile) override;
  void close(const Memory& memory, int threads) override;
  std::string describe() const override;

 private:
  std::unique_ptr<ConvolutionKernel> kernel_;
  const KernelTable& kernels_;
  Spec spec_;
};

}  // namespace convoy::cpu
