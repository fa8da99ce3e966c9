// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/global_average_pool_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

class GlobalAverageStep final : public Step {
 public:
  struct Spec {
    TensorLayout x;
    InstructionKind kind{};
    Operand from, to;
  };
  GlobalAverageStep(const GlobalAverageKernels& kernels, const Spec& spec) : kernels_(kernels), spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const GlobalAverageArgs args{spec_.x, spec_.from.at(memory, tile), spec_.to.at(memory, tile)};
    run_units(spec_.kind == InstructionKind::forward ? kernels_.forward : kernels_.backward, args, args.x, tile.count);
    return true;
  }

 private:
  const GlobalAverageKernels& kernels_;
  const Spec spec_;
};

class GlobalAverageOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override { sources[0] = TensorKind::spatial; }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::features; }
  OperationTraits traits(const Node&) const override { return {}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const bool forward = i.kind == InstructionKind::forward;
    steps.add<GlobalAverageStep>(steps.kernels<GlobalAverageKernels>(),
                                 GlobalAverageStep::Spec{.x = steps.layout(steps.source(i)),
                                                         .kind = i.kind,
                                                         .from = forward ? steps.x(i) : steps.dy(i),
                                                         .to = forward ? steps.y(i) : steps.dx(i)});
  }
};

}  // namespace

template <>
const Operation& operation_for<GlobalAveragePool>() {
  static const GlobalAverageOperation operation;
  return operation;
}

}  // namespace convoy::cpu
