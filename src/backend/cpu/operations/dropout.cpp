// SPDX-License-Identifier: Apache-2.0
#include "backend/rules/dropout.hpp"

#include <cstring>

#include "backend/cpu/element.hpp"
#include "backend/cpu/operation.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

/// The same forward and backward: a copy where the mask keeps, scaled, and zeros. Rate 0: a copy.
class DropoutStep final : public Step {
 public:
  struct Spec {
    TensorLayout layout;
    float rate = 0;
    NodeId node = 0;
    Operand from, to;
  };
  DropoutStep(const Spec& spec, const StepParams& step) : spec_(spec), step_(step) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const TensorLayout& layout = spec_.layout;
    const std::byte* const from = spec_.from.at(memory, tile);
    std::byte* const to = spec_.to.at(memory, tile);
    if (spec_.rate == 0) {
      std::memcpy(to, from, static_cast<std::size_t>(tile.count * layout.image_bytes()));
      return true;
    }
    const DropoutRule rule = DropoutRule::of(spec_.rate);
    const std::uint64_t node_key = dropout_key(step_.seed, step_.step, spec_.node);
    const Index pixels = layout.pixels();
    // Channels that only fill the last block stay zeros.
    const Index stored = layout.blocked() ? layout.padded_channels() : layout.channels;
    split_units(tile.count * stored, pixels, [&](Index begin, Index end) {
      for (Index unit = begin; unit < end; ++unit) {
        const Index image = unit / stored, c = unit % stored;
        const SampleSpec& sample = memory.samples[static_cast<std::size_t>(tile.first + image)];
        const std::uint64_t key = dropout_sample_key(node_key, sample.position);
        const Index start = image * layout.image + c / lanes * layout.block + c % lanes;
        for (Index p = 0; p < pixels; ++p) {
          const Index at = start + p * layout.pixel;
          const float factor = c < layout.channels ? rule.factor(key, c * pixels + p) : 0;
          write_element(to, layout.storage, at, factor * read_element(from, layout.storage, at));
        }
      }
    });
    return true;
  }

 private:
  const Spec spec_;
  const StepParams& step_;
};

class DropoutOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override {
    if (sources[0] == TensorKind::image) sources[0] = TensorKind::spatial;
  }
  TensorKind makes(std::span<const TensorKind> sources) const override { return sources[0]; }
  OperationTraits traits(const Node&) const override { return {}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const bool forward = i.kind == InstructionKind::forward;
    const ProgramParts& parts = steps.parts();
    const float rate = std::get<Dropout>(steps.node(i.value).attributes).rate;
    steps.add<DropoutStep>(DropoutStep::Spec{.layout = steps.layout(i.value),
                                             .rate = parts.spec.mode == Mode::train ? rate : 0,
                                             .node = steps.value(i.value).node,
                                             .from = forward ? steps.x(i) : steps.dy(i),
                                             .to = forward ? steps.y(i) : steps.dx(i)},
                           parts.step);
  }
};

}  // namespace

template <>
const Operation& operation_for<Dropout>() {
  static const DropoutOperation operation;
  return operation;
}

}  // namespace convoy::cpu
