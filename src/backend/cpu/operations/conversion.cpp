// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/conversion.hpp"

#include <cstring>

#include "backend/cpu/element.hpp"
#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/conversion_loops.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"

namespace convoy::cpu {
namespace {

class StorageStep final : public Step {
 public:
  StorageStep(const ConversionKernels& kernels, const TensorLayout& from_layout, Operand from, Operand to)
      : kernels_(kernels), layout_(from_layout), from_(from), to_(to) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const ConvertArgs args{layout_, from_.at(memory, tile), to_.at(memory, tile)};
    run_units(kernels_.convert, args, layout_, tile.count);
    return true;
  }

 private:
  const ConversionKernels& kernels_;
  const TensorLayout layout_;
  const Operand from_, to_;
};

class OrderStep final : public Step {
 public:
  OrderStep(const TensorLayout& layout, OrderTo to, Operand from, Operand out)
      : layout_(layout), to_(to), from_(from), out_(out) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const std::byte* const from = from_.at(memory, tile);
    std::byte* const out = out_.at(memory, tile);
    const Index pixels = layout_.pixels(), plain_image = layout_.channels * pixels;
    split_units(tile.count, plain_image, [&](Index begin, Index end) {
      for (Index image = begin; image < end; ++image) {
        for (Index c = 0; c < layout_.blocks() * lanes; ++c) {
          const Index start = image * layout_.image + c / lanes * layout_.block + c % lanes;
          if (c >= layout_.channels && !layout_.blocked()) break;
          for (Index p = 0; p < pixels; ++p) {
            const Index there = start + p * layout_.pixel, here = image * plain_image + c * pixels + p;
            if (to_ == OrderTo::plain) {
              if (c < layout_.channels)
                write_element(out, Storage::f32, here, read_element(from, layout_.storage, there));
            } else {
              write_element(out, layout_.storage, there,
                            c < layout_.channels ? read_element(from, Storage::f32, here) : 0.0F);
            }
          }
        }
      }
    });
    return true;
  }

 private:
  const TensorLayout layout_;
  const OrderTo to_;
  const Operand from_, out_;
};

class CopyStep final : public Step {
 public:
  CopyStep(const TensorLayout& layout, Operand from, Operand to) : layout_(layout), from_(from), to_(to) {}

  bool run(const Memory& memory, const Tile& tile) override {
    const std::byte* const from = from_.at(memory, tile);
    std::byte* const to = to_.at(memory, tile);
    split_units(tile.count, layout_.image, [&](Index begin, Index end) {
      std::memcpy(to + begin * layout_.image_bytes(), from + begin * layout_.image_bytes(),
                  static_cast<std::size_t>((end - begin) * layout_.image_bytes()));
    });
    return true;
  }

 private:
  const TensorLayout layout_;
  const Operand from_, to_;
};

class Conversion final : public Operation {
 public:
  void reads(std::span<TensorKind>) const override {}
  TensorKind makes(std::span<const TensorKind> sources) const override { return sources[0]; }
  OperationTraits traits(const Node&) const override { return {}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const bool forward = i.kind == InstructionKind::forward;
    const int id = i.value, source = steps.source(i);
    const Operand from = forward ? steps.x(i) : steps.dy(i), to = forward ? steps.y(i) : steps.dx(i);
    if (steps.plain(source) == steps.plain(id)) {  // n c h w flattened, or nhwc images: nothing changes its place
      steps.add<CopyStep>(steps.layout(id), from, to);
      return;
    }
    const bool to_plain = steps.plain(forward ? id : source);
    add_reordering(steps.layout(steps.plain(source) ? id : source), to_plain ? OrderTo::plain : OrderTo::layout, from,
                   to, steps);
  }
};

}  // namespace

void add_storage_conversion(const TensorLayout& from_layout, Operand from, Operand to, StepBuilder& steps) {
  steps.add<StorageStep>(steps.kernels<ConversionKernels>(), from_layout, from, to);
}

void add_reordering(const TensorLayout& layout, OrderTo to, Operand from, Operand out, StepBuilder& steps) {
  steps.add<OrderStep>(layout, to, from, out);
}

const Operation& conversion() {
  static const Conversion operation;
  return operation;
}

}  // namespace convoy::cpu
