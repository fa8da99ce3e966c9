// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "backend/cpu/operation.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

/// Features x [n][in], y [n][out], w [out][in], all in fp32.
struct LinearSpec {
  Index images = 0, in = 0, out = 0;
  Range weight, bias;  ///< places in the values and in the gradient block; bias may be empty
  Operand x, y;        ///< y is dy in backward
  Operand dx;          ///< none: not wanted
  bool weight_trains = true, bias_trains = true;
};

/// y = x w^T + bias.
class LinearStep final : public Step {
 public:
  explicit LinearStep(const LinearSpec& spec) : spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const auto* x = reinterpret_cast<const float*>(spec_.x.at(memory, tile));
    auto* y = reinterpret_cast<float*>(spec_.y.at(memory, tile));
    if (spec_.bias.count > 0) {
      const float* const bias = memory.values + spec_.bias.begin;
      for (Index i = 0; i < spec_.images; ++i) std::copy(bias, bias + spec_.out, y + i * spec_.out);
    }
    return dnnl_sgemm('N', 'T', spec_.images, spec_.out, spec_.in, 1.0F, x, spec_.in,
                      memory.values + spec_.weight.begin, spec_.in, spec_.bias.count > 0 ? 1.0F : 0.0F, y,
                      spec_.out) == dnnl_success;
  }
  std::string describe() const override { return "sgemm"; }

 private:
  const LinearSpec spec_;
};

/// dw = dy^T x, dbias = sum dy, dx = dy w.
class LinearGradientStep final : public Step {
 public:
  LinearGradientStep(const ArrayKernels& kernels, const LinearSpec& spec)
      : kernels_(kernels), spec_(spec), bias_(static_cast<std::size_t>(spec.bias.count)) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const LinearSpec& s = spec_;
    const auto* x = reinterpret_cast<const float*>(s.x.at(memory, tile));
    const auto* dy = reinterpret_cast<const float*>(s.y.at(memory, tile));
    bool good = true;
    if (s.weight_trains)
      good = dnnl_sgemm('T', 'N', s.out, s.in, s.images, 1.0F, dy, s.out, x, s.in, 0.0F,
                        memory.gradients + s.weight.begin, s.in) == dnnl_success;
    if (s.bias.count > 0 && s.bias_trains) {
      float* const bias = memory.gradients + s.bias.begin;
      split_units(s.out, s.images, [&](Index begin, Index end) {
        kernels_.fold(dy, s.images, s.out, bias_.data(), begin, end);
        for (Index k = begin; k < end; ++k) bias[k] = static_cast<float>(bias_[static_cast<std::size_t>(k)]);
      });
    }
    if (s.dx)
      good = good && dnnl_sgemm('N', 'N', s.images, s.in, s.out, 1.0F, dy, s.out, memory.values + s.weight.begin, s.in,
                                0.0F, reinterpret_cast<float*>(s.dx.at(memory, tile)), s.in) == dnnl_success;
    return good;
  }
  std::string describe() const override { return "sgemm"; }

 private:
  const ArrayKernels& kernels_;
  const LinearSpec spec_;
  std::vector<double> bias_;  ///< its gradient's sums
};

class LinearOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override { sources[0] = TensorKind::features; }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::features; }
  OperationTraits traits(const Node&) const override { return {.whole_batch = true, .backward_reads_source = true}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const auto& linear = std::get<Linear>(steps.node(i.value).attributes);
    LinearSpec spec{.images = steps.images(), .in = linear.in, .out = linear.out};
    spec.weight = steps.parameter(i.value, 0);
    spec.bias = steps.parameter(i.value, 1);
    spec.x = steps.x(i);
    if (i.kind == InstructionKind::forward) {
      spec.y = steps.y(i);
      steps.add<LinearStep>(spec);
      return;
    }
    spec.y = steps.dy(i);
    spec.dx = steps.dx(i);
    spec.weight_trains = steps.trains(i.value, 0);
    spec.bias_trains = steps.trains(i.value, 1);
    steps.add<LinearGradientStep>(steps.kernels<ArrayKernels>(), spec);
  }
};

}  // namespace

template <>
const Operation& operation_for<Linear>() {
  static const LinearOperation operation;
  return operation;
}

}  // namespace convoy::cpu
