// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/group.hpp"

#include "backend/cpu/operations/group_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

/// A term whose addresses are known at a launch.
struct TermOperand {
  Operand value;
  const NormVectors* norm = nullptr;

  TermArgs at(const Memory& memory, const Tile& tile) const {
    return {value.at(memory, tile), norm ? norm->scale : nullptr, norm ? norm->shift : nullptr};
  }
};

TermOperand term_operand(const Instruction& instruction, std::size_t i, const StepBuilder& steps) {
  const Value& group = steps.value(instruction.value);
  if (i >= group.terms.size()) return {};
  const int norm = group.terms[i].norm;
  return {steps.operand(instruction[i == 0 ? Slot::term0 : Slot::term1], instruction.value),
          norm >= 0 ? &steps.parts().norms.vectors(norm) : nullptr};
}

template <class T = float>
T* numbers(const Operand& operand, const Memory& memory, const Tile& tile) {
  return reinterpret_cast<T*>(operand.at(memory, tile));
}

class EvaluateStep final : public Step {
 public:
  struct Spec {
    EvaluateArgs args;  ///< without addresses
    TermOperand terms[2];
    Operand out;
  };
  EvaluateStep(const GroupKernels& kernels, const Spec& spec) : kernels_(kernels), spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    EvaluateArgs args = spec_.args;
    for (int i = 0; i < 2; ++i) args.terms[i] = spec_.terms[i].at(memory, tile);
    args.out = spec_.out.at(memory, tile);
    run_units(kernels_.evaluate, args, args.layout, tile.count);
    return true;
  }

 private:
  const GroupKernels& kernels_;
  const Spec spec_;
};

class StatisticsStep final : public Step {
 public:
  struct Spec {
    TensorLayout layout;
    Operand value, means, spreads;
    std::vector<int> norms;
    Index images = 0;
  };
  StatisticsStep(const GroupKernels& kernels, Norms& norms, Spec spec)
      : kernels_(kernels), norms_(norms), spec_(std::move(spec)) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const StatisticsArgs args{.layout = spec_.layout,
                              .value = spec_.value.at(memory, tile),
                              .means = numbers<double>(spec_.means, memory, tile),
                              .spreads = numbers<double>(spec_.spreads, memory, tile)};
    run_units(kernels_.statistics, args, args.layout, tile.count);
    return true;
  }

  void close(const Memory& memory, int) override {
    for (const int norm : spec_.norms)
      norms_.fold_statistics(norm, memory.norm_step, numbers<double>(spec_.means, memory, {}),
                             numbers<double>(spec_.spreads, memory, {}), spec_.images);
  }

 private:
  const GroupKernels& kernels_;
  Norms& norms_;
  const Spec spec_;
};

class AccumulateStep final : public Step {
 public:
  struct Spec {
    AccumulateArgs args;  ///< without addresses
    Operand gradient, self, second, output, out, sums;
    TermOperand terms[2];
    Operand value[2], products[2];
    const NormVectors* through = nullptr;  ///< the norm that `gradient` comes through
    std::array<int, 2> norms{-1, -1};
    Index images = 0;
  };
  AccumulateStep(const GroupKernels& kernels, Norms& norms, const Spec& spec)
      : kernels_(kernels), norms_(norms), spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    AccumulateArgs args = spec_.args;
    args.gradient = spec_.gradient.at(memory, tile);
    args.self = spec_.self.at(memory, tile);
    args.second = spec_.second.at(memory, tile);
    args.output = spec_.output.at(memory, tile);
    args.out = spec_.out.at(memory, tile);
    for (int i = 0; i < 2; ++i) args.terms[i] = spec_.terms[i].at(memory, tile);
    if (spec_.through) {
      args.a = spec_.through->a;
      args.b = spec_.through->b;
      args.d = spec_.through->d;
    }
    args.sums = numbers(spec_.sums, memory, tile);
    for (int i = 0; i < args.norms; ++i)
      args.norm[i] = {.value = spec_.value[i].at(memory, tile),
                      .mean = norms_.vectors(spec_.norms[static_cast<std::size_t>(i)]).mean,
                      .products = numbers(spec_.products[i], memory, tile)};
    run_units(kernels_.accumulate, args, args.layout, tile.count);
    return true;
  }

  void close(const Memory& memory, int) override {
    for (int i = 0; i < spec_.args.norms; ++i)
      norms_.fold_products(spec_.norms[static_cast<std::size_t>(i)], memory.norm_step, numbers(spec_.sums, memory, {}),
                           numbers(spec_.products[i], memory, {}), spec_.images);
  }

 private:
  const GroupKernels& kernels_;
  Norms& norms_;
  const Spec spec_;
};

}  // namespace

void add_evaluation(const Instruction& instruction, StepBuilder& steps) {
  const int id = instruction.value;
  const Value& group = steps.value(id);
  EvaluateStep::Spec spec;
  spec.args.layout = steps.layout(id);
  spec.args.activation = group.activation;
  spec.args.slope = group.slope;
  for (std::size_t i = 0; i < 2; ++i) spec.terms[i] = term_operand(instruction, i, steps);
  spec.out = steps.operand(instruction.out, id);
  steps.add<EvaluateStep>(steps.kernels<GroupKernels>(), spec);
}

void add_statistics(const Instruction& instruction, StepBuilder& steps) {
  const int id = instruction.value;
  const TensorLayout& layout = steps.layout(id);
  steps.add<StatisticsStep>(steps.kernels<GroupKernels>(), steps.parts().norms,
                            StatisticsStep::Spec{.layout = layout,
                                                 .value = steps.operand(instruction[Slot::source], id),
                                                 .means = steps.partial_sums(layout, sizeof(double)),
                                                 .spreads = steps.partial_sums(layout, sizeof(double)),
                                                 .norms = steps.value(id).norms,
                                                 .images = steps.images()});
}

void add_accumulation(const Instruction& instruction, StepBuilder& steps) {
  const int id = instruction.value;
  const Value& value = steps.value(id);
  const TensorLayout& layout = steps.layout(id);
  AccumulateStep::Spec spec;
  spec.args.layout = layout;
  if (instruction[Slot::output] || instruction[Slot::term0]) {
    spec.args.activation = value.activation;
    spec.args.slope = value.slope;
  }
  spec.gradient = steps.operand(instruction[Slot::gradient], id);
  spec.self = steps.operand(instruction[Slot::self], id);
  spec.second = steps.operand(instruction[Slot::second], id);
  spec.output = steps.operand(instruction[Slot::output], id);
  spec.out = steps.operand(instruction.out, id);
  spec.images = steps.images();
  if (instruction[Slot::term0])
    for (std::size_t i = 0; i < 2; ++i) spec.terms[i] = term_operand(instruction, i, steps);
  if (instruction.norm >= 0) spec.through = &steps.parts().norms.vectors(instruction.norm);
  spec.norms = instruction.norms;
  for (int i = 0; i < 2 && instruction.norms[static_cast<std::size_t>(i)] >= 0; ++i) {
    ++spec.args.norms;
    spec.value[i] = steps.operand(instruction[i == 0 ? Slot::norm0 : Slot::norm1], id);
    spec.products[i] = steps.partial_sums(layout);
  }
  if (spec.args.norms > 0) spec.sums = steps.partial_sums(layout);
  steps.add<AccumulateStep>(steps.kernels<GroupKernels>(), steps.parts().norms, spec);
}

}  // namespace convoy::cpu
