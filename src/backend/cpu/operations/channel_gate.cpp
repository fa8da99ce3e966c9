// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/channel_gate_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

class GateStep final : public Step {
 public:
  using Kernel = void (*)(const GateArgs&, Index begin, Index end);
  struct Spec {
    GateArgs args;  ///< without addresses
    Kernel kernel = nullptr;
    Operand x, s, dy, to;
  };
  explicit GateStep(const Spec& spec) : spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    GateArgs args = spec_.args;
    args.from_x = spec_.x.at(memory, tile);
    args.from_s = spec_.s.at(memory, tile);
    args.dy = spec_.dy.at(memory, tile);
    args.to = spec_.to.at(memory, tile);
    run_units(spec_.kernel, args, args.x, tile.count);
    return true;
  }

 private:
  const Spec spec_;
};

class ChannelGateOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override {
    for (TensorKind& source : sources) source = TensorKind::spatial;
  }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::spatial; }
  OperationTraits traits(const Node&) const override { return {.backward_reads_source = true, .reads_together = true}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const int x = steps.value(i.value).sources[0], s = steps.value(i.value).sources[1];
    const auto& kernels = steps.kernels<GateKernels>();
    GateStep::Spec spec;
    spec.args = {
        .x = steps.layout(x), .s = steps.layout(s), .gate = std::get<ChannelGate>(steps.node(i.value).attributes).gate};
    spec.s = steps.operand(i[Slot::other], s);
    if (i.kind == InstructionKind::forward) {
      spec.kernel = kernels.forward;
      spec.x = steps.operand(i[Slot::source], x);
      spec.to = steps.y(i);
    } else {
      spec.kernel = i.source == 0 ? kernels.backward : kernels.backward_gate;
      spec.x = steps.operand(i[Slot::x], x);
      spec.dy = steps.dy(i);
      spec.to = steps.dx(i);
    }
    steps.add<GateStep>(spec);
  }
};

}  // namespace

template <>
const Operation& operation_for<ChannelGate>() {
  static const ChannelGateOperation operation;
  return operation;
}

}  // namespace convoy::cpu
