// SPDX-License-Identifier: Apache-2.0
// Each source is a slice of the result's channels: forward copies it there, backward copies its part of dy out.
#include <algorithm>

#include "backend/cpu/operation.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

/// Channels [begin, end) of a tensor.
struct Slice {
  TensorLayout layout;
  Index begin = 0, end = 0;

  Index element(Index channel) const { return channel / lanes * layout.block + channel % lanes; }
  /// Channels from `channel` on that lie side by side in memory.
  Index run(Index channel) const { return layout.block == lanes ? layout.channels - channel : lanes - channel % lanes; }
};

template <class T>
void copy_image(const Slice& from, const T* source, const Slice& to, T* target) {
  const Index pixels = to.layout.pixels(), count = from.end - from.begin;
  for (Index done = 0; done < count;) {
    const Index a = from.begin + done, b = to.begin + done;
    const Index run = std::min({from.run(a), to.run(b), count - done});
    const T* const x = source + from.element(a);
    T* const y = target + to.element(b);
    if (run == from.layout.pixel && run == to.layout.pixel) {  // the pixels lie side by side, too
      std::copy_n(x, run * pixels, y);
    } else {
      for (Index p = 0; p < pixels; ++p) std::copy_n(x + p * from.layout.pixel, run, y + p * to.layout.pixel);
    }
    done += run;
  }
  // Channels that only fill the last block are zeros.
  if (!to.layout.blocked() || to.end < to.layout.channels || to.end % lanes == 0) return;
  for (Index p = 0; p < pixels; ++p)
    std::fill_n(target + to.element(to.end) + p * to.layout.pixel, lanes - to.end % lanes, T{});
}

class SliceStep final : public Step {
 public:
  struct Spec {
    Slice from, to;
    Operand source, target;
  };
  explicit SliceStep(const Spec& spec) : spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    switch (spec_.to.layout.storage) {
      case Storage::f32:
        copy<float>(memory, tile);
        break;
      case Storage::bf16:
        copy<std::uint16_t>(memory, tile);
        break;
    }
    return true;
  }

 private:
  template <class T>
  void copy(const Memory& memory, const Tile& tile) const {
    const T* const source = reinterpret_cast<const T*>(spec_.source.at(memory, tile));
    T* const target = reinterpret_cast<T*>(spec_.target.at(memory, tile));
    const Slice &from = spec_.from, &to = spec_.to;
    split_units(tile.count, (from.end - from.begin) * from.layout.pixels(), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        copy_image(from, source + i * from.layout.image, to, target + i * to.layout.image);
    });
  }

  const Spec spec_;
};

class ConcatenationOperation final : public Operation {
 public:
  void reads(std::span<TensorKind> sources) const override { read_alike(sources); }
  TensorKind makes(std::span<const TensorKind> sources) const override { return sources[0]; }
  OperationTraits traits(const Node&) const override { return {}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    Slice whole{.layout = steps.layout(i.value)}, part{.layout = steps.layout(steps.source(i))};
    const auto& sources = steps.value(i.value).sources;
    for (int before = 0; before < i.source; ++before)
      whole.begin += steps.layout(sources[static_cast<std::size_t>(before)]).channels;
    part.end = part.layout.channels;
    whole.end = whole.begin + part.end;
    if (i.kind == InstructionKind::forward)
      steps.add<SliceStep>(SliceStep::Spec{.from = part, .to = whole, .source = steps.x(i), .target = steps.y(i)});
    else
      steps.add<SliceStep>(SliceStep::Spec{.from = whole, .to = part, .source = steps.dy(i), .target = steps.dx(i)});
  }
};

}  // namespace

template <>
const Operation& operation_for<Concatenation>() {
  static const ConcatenationOperation operation;
  return operation;
}

}  // namespace convoy::cpu
