// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/adaptive_average_pool_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

class AdaptivePoolStep final : public Step {
 public:
  struct Spec {
    AdaptivePoolArgs args;  ///< without addresses
    InstructionKind kind{};
    Operand from, to;
  };
  AdaptivePoolStep(const AdaptivePoolKernels& kernels, const Spec& spec) : kernels_(kernels), spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    AdaptivePoolArgs args = spec_.args;
    args.from = spec_.from.at(memory, tile);
    args.to = spec_.to.at(memory, tile);
    if (spec_.kind == InstructionKind::forward)
      run_units(kernels_.forward, args, args.y, tile.count);
    else
      run_units(kernels_.backward, args, args.x, tile.count);
    return true;
  }

 private:
  const AdaptivePoolKernels& kernels_;
  const Spec spec_;
};

class AdaptivePoolOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override { sources[0] = TensorKind::spatial; }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::spatial; }
  OperationTraits traits(const Node&) const override { return {.reads_tile = ReadsTile::only_reader}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const bool forward = i.kind == InstructionKind::forward;
    steps.add<AdaptivePoolStep>(
        steps.kernels<AdaptivePoolKernels>(),
        AdaptivePoolStep::Spec{.args = {.x = steps.layout(steps.source(i)), .y = steps.layout(i.value)},
                               .kind = i.kind,
                               .from = forward ? steps.x(i) : steps.dy(i),
                               .to = forward ? steps.y(i) : steps.dx(i)});
  }
};

}  // namespace

template <>
const Operation& operation_for<AdaptiveAveragePool>() {
  static const AdaptivePoolOperation operation;
  return operation;
}

}  // namespace convoy::cpu
