// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/pool_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

class PoolStep final : public Step {
 public:
  struct Spec {
    PoolArgs args;  ///< without addresses
    InstructionKind kind{};
    Operand from, to, argmax;
  };
  PoolStep(const PoolKernels& kernels, const Spec& spec) : kernels_(kernels), spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    PoolArgs args = spec_.args;
    args.from = spec_.from.at(memory, tile);
    args.to = spec_.to.at(memory, tile);
    args.argmax = reinterpret_cast<std::uint16_t*>(spec_.argmax.at(memory, tile));
    if (spec_.kind == InstructionKind::forward)
      run_units(kernels_.forward, args, args.y, tile.count);
    else
      run_units(kernels_.backward, args, args.x, tile.count);
    return true;
  }

 private:
  const PoolKernels& kernels_;
  const Spec spec_;
};

class PoolOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override { sources[0] = TensorKind::spatial; }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::spatial; }
  OperationTraits traits(const Node& node) const override {
    return {.reads_tile = ReadsTile::only_reader,
            .keeps_argmax = std::get<Pool>(node.attributes).mode == Pool::Mode::max};
  }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const bool forward = i.kind == InstructionKind::forward;
    const auto& pool = std::get<Pool>(steps.node(i.value).attributes);
    const TensorLayout& y = steps.layout(i.value);
    PoolStep::Spec spec{.kind = i.kind};
    spec.args = {.x = steps.layout(steps.source(i)),
                 .y = y,
                 .kernel = pool.kernel,
                 .stride = pool.stride,
                 .pad = pool.pad,
                 .count_padding = pool.count_padding};
    spec.from = forward ? steps.x(i) : steps.dy(i);
    spec.to = forward ? steps.y(i) : steps.dx(i);
    spec.argmax = steps.operand(i.argmax, i.value);
    if (spec.argmax) spec.argmax.image_bytes = y.image * 2;
    if (pool.mode == Pool::Mode::max && !spec.argmax)
      spec.argmax = steps.in_thread(steps.tile() * y.image * 2, StepBuilder::Needed::by_run);
    steps.add<PoolStep>(steps.kernels<PoolKernels>(), spec);
  }
};

}  // namespace

template <>
const Operation& operation_for<Pool>() {
  static const PoolOperation operation;
  return operation;
}

}  // namespace convoy::cpu
