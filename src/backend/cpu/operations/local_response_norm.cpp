// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/local_response_norm_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

class LocalResponseStep final : public Step {
 public:
  struct Spec {
    LocalResponseArgs args;  ///< without addresses
    Operand x, dy, to;       ///< no dy: forward
  };
  LocalResponseStep(const LocalResponseKernels& kernels, const Spec& spec) : kernels_(kernels), spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    LocalResponseArgs args = spec_.args;
    args.x = spec_.x.at(memory, tile);
    args.dy = spec_.dy.at(memory, tile);
    args.to = spec_.to.at(memory, tile);
    split_units(tile.count * args.layout.height, args.layout.width * args.layout.channels,
                [&](Index begin, Index end) { kernels_.run(args, begin, end); });
    return true;
  }

 private:
  const LocalResponseKernels& kernels_;
  const Spec spec_;
};

class LocalResponseOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override { sources[0] = TensorKind::spatial; }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::spatial; }
  OperationTraits traits(const Node&) const override {
    return {.reads_tile = ReadsTile::only_reader, .backward_reads_source = true};
  }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const bool forward = i.kind == InstructionKind::forward;
    const auto& norm = std::get<LocalResponseNorm>(steps.node(i.value).attributes);
    if (norm.size > 2 * lanes)
      fail(Exit::device, "node '{}' normalises over {} channels (the CPU backend: at most {}); use a smaller window",
           steps.node(i.value).name, norm.size, 2 * lanes);
    LocalResponseStep::Spec spec;
    spec.args = {.layout = steps.layout(i.value),
                 .rule = {norm.size, norm.alpha / static_cast<float>(norm.size), norm.beta, norm.k}};
    spec.x = steps.x(i);
    if (!forward) spec.dy = steps.dy(i);
    spec.to = forward ? steps.y(i) : steps.dx(i);
    steps.add<LocalResponseStep>(steps.kernels<LocalResponseKernels>(), spec);
  }
};

}  // namespace

template <>
const Operation& operation_for<LocalResponseNorm>() {
  static const LocalResponseOperation operation;
  return operation;
}

}  // namespace convoy::cpu
