// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/convolution.hpp"

#include <algorithm>

#include "backend/cpu/choices.hpp"
#include "backend/cpu/gemm/weight_gradient.hpp"
#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/conversion.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/cpu/step_builder.hpp"
#include "backend/cpu/winograd/winograd.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Forward, or the gradient with respect to the source.
class ConvolutionStep final : public Step {
 public:
  struct Spec {
    Range weight, bias;  ///< places in the values block; bias may be empty
    Operand from, to, packed, scratch;
    Direction direction = Direction::forward;
  };
  ConvolutionStep(std::unique_ptr<ConvolutionKernel> kernel, const Spec& spec)
      : kernel_(std::move(kernel)), spec_(spec) {}

  void open(const Memory& memory) override {
    kernel_->pack(memory.values + spec_.weight.begin, spec_.packed.at(memory, {}));
  }

  bool run(const Memory& memory, const Tile& tile) override {
    const void* source = spec_.from.at(memory, tile);
    const void* result = spec_.to.at(memory, tile);
    if (spec_.direction == Direction::data) std::swap(source, result);
    const float* const bias = spec_.bias.count > 0 ? memory.values + spec_.bias.begin : nullptr;
    return kernel_->execute({.copy = tile.thread,
                             .source = source,
                             .packed = spec_.packed.at(memory, tile),
                             .bias = bias,
                             .result = result,
                             .scratch = spec_.scratch.at(memory, tile)});
  }

  std::string describe() const override {
    return (spec_.direction == Direction::forward ? "forward " : "data ") + kernel_->name();
  }

 private:
  const std::unique_ptr<ConvolutionKernel> kernel_;
  const Spec spec_;
};

/// The gradient with respect to weights and bias. A thread's first tile goes straight into its sum, the others are
/// added, by the kernel if it can; at the end the sums of the threads, in their order.
class WeightGradientStep final : public Step {
 public:
  struct Spec {
    Range weight, bias;  ///< places in the gradient block; empty: not wanted
    Operand source, dy, sum, part, bias_sum, bias_part, scratch;
    Index bias_floats = 0;
  };
  WeightGradientStep(std::unique_ptr<ConvolutionKernel> kernel, const ArrayKernels& kernels, const Spec& spec)
      : kernel_(std::move(kernel)), kernels_(kernels), spec_(spec) {}

  bool run(const Memory& memory, const Tile& tile) override {
    auto* const sum = reinterpret_cast<float*>(spec_.sum.at(memory, tile));
    auto* const bias_sum = reinterpret_cast<float*>(spec_.bias_sum.at(memory, tile));
    const bool in_place = tile.opening || kernel_->adds();
    float* const out = in_place ? sum : reinterpret_cast<float*>(spec_.part.at(memory, tile));
    float* const bias = in_place ? bias_sum : reinterpret_cast<float*>(spec_.bias_part.at(memory, tile));
    if (!kernel_->execute({.copy = tile.thread,
                           .source = spec_.source.at(memory, tile),
                           .packed = out,
                           .bias = bias,
                           .result = spec_.dy.at(memory, tile),
                           .scratch = spec_.scratch.at(memory, tile),
                           .add = !tile.opening}))
      return false;
    if (!in_place) {
      kernels_.add(sum, out, kernel_->packed_bytes() / 4);
      kernels_.add(bias_sum, bias, spec_.bias_floats);
    }
    return true;
  }

  void close(const Memory& memory, int threads) override {
    auto* const sum = reinterpret_cast<float*>(spec_.sum.at(memory, {}));
    auto* const bias_sum = reinterpret_cast<float*>(spec_.bias_sum.at(memory, {}));
    if (threads > 1) {
      const Index floats = kernel_->packed_bytes() / 4;
      constexpr Index piece = 4096;  // stays in a first-level cache while all threads' sums are added
      split_units((floats + piece - 1) / piece, piece, [&](Index begin, Index end) {
        for (Index first = begin * piece; first < std::min(end * piece, floats); first += piece)
          for (int t = 1; t < threads; ++t)
            kernels_.add(sum + first, sum_of(memory, t) + first, std::min(piece, floats - first));
      });
      for (int t = 1; t < threads; ++t)
        kernels_.add(bias_sum, reinterpret_cast<const float*>(spec_.bias_sum.at(memory, {.thread = t})),
                     spec_.bias_floats);
    }
    if (spec_.weight.count > 0) kernel_->unpack(sum, memory.gradients + spec_.weight.begin);
    if (spec_.bias.count > 0) std::copy(bias_sum, bias_sum + spec_.bias.count, memory.gradients + spec_.bias.begin);
  }

  std::string describe() const override { return "weights " + kernel_->name(); }

 private:
  const float* sum_of(const Memory& memory, int thread) const {
    return reinterpret_cast<const float*>(spec_.sum.at(memory, {.thread = thread}));
  }

  const std::unique_ptr<ConvolutionKernel> kernel_;
  const ArrayKernels& kernels_;
  const Spec spec_;
};

Direction direction_of(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::forward:
      return Direction::forward;
    case InstructionKind::backward:
      return Direction::data;
    case InstructionKind::weight_gradient:
      return Direction::weights;
    case InstructionKind::evaluate:
    case InstructionKind::statistics:
    case InstructionKind::accumulate:
      break;
  }
  fail(Exit::internal, "internal error: not an instruction of a convolution");
}

bool fits(const ConvolutionSpec& spec) {
  switch (spec.algorithm) {
    case Algorithm::winograd:
    case Algorithm::winograd_bf16:
      return winograd_fits(spec.shape);
    case Algorithm::grouped:
      return spec.shape.groups > 1;
    case Algorithm::gemm:
      return gemm_fits(spec.shape, spec.direction);
    case Algorithm::direct:
      break;
  }
  return true;
}

/// Compiles one instruction.
class Compiler {
  using Needed = StepBuilder::Needed;

 public:
  Compiler(const Instruction& instruction, StepBuilder& steps)
      : i_(instruction), steps_(steps), direction_(direction_of(instruction.kind)), fp32_(steps.layout(i_.value)) {
    fp32_.storage = Storage::f32;
    through_fp32_ = steps.plain(steps.source(i_)) && steps.layout(i_.value).storage != Storage::f32;
  }

  void add_convolution() {
    auto kernel = make_kernel();
    const bool forward = direction_ == Direction::forward;
    ConvolutionStep::Spec spec;
    spec.direction = direction_;
    spec.weight = steps_.parameter(i_.value, 0);
    if (forward) spec.bias = steps_.parameter(i_.value, 1);
    spec.from = forward ? steps_.x(i_) : steps_.dy(i_);
    spec.to = forward ? steps_.y(i_) : steps_.dx(i_);
    spec.packed = steps_.in_shared(kernel->packed_bytes(), Needed::by_step);
    spec.scratch = steps_.in_thread(kernel->scratch_bytes(), Needed::by_run);
    require(forward || !through_fp32_, "the image has no gradient");
    const Operand result = spec.to;
    if (through_fp32_) spec.to = fp32_tile();
    const Operand made = spec.to;
    steps_.add<ConvolutionStep>(std::move(kernel), spec);
    if (through_fp32_) add_storage_conversion(fp32_, made, result, steps_);
  }

  void add_weight_gradient() {
    auto kernel = make_kernel();
    WeightGradientStep::Spec spec;
    if (steps_.trains(i_.value, 0)) spec.weight = steps_.parameter(i_.value, 0);
    if (steps_.trains(i_.value, 1)) spec.bias = steps_.parameter(i_.value, 1);
    spec.source = steps_.x(i_);
    spec.dy = steps_.dy(i_);
    if (through_fp32_) {
      const Operand wide = fp32_tile();
      add_storage_conversion(steps_.layout(i_.value), spec.dy, wide, steps_);
      spec.dy = wide;
    }
    spec.scratch = steps_.in_thread(kernel->scratch_bytes(), Needed::by_run);
    spec.sum = steps_.in_thread(kernel->packed_bytes(), Needed::by_step);
    spec.bias_floats = steps_.parameter(i_.value, 1).count;
    if (spec.bias_floats > 0) spec.bias_sum = steps_.in_thread(spec.bias_floats * 4, Needed::by_step);
    if (!kernel->adds() && !steps_.choice().inner) {
      spec.part = steps_.in_thread(kernel->packed_bytes(), Needed::by_run);
      if (spec.bias_floats > 0) spec.bias_part = steps_.in_thread(spec.bias_floats * 4, Needed::by_run);
    }
    steps_.add<WeightGradientStep>(std::move(kernel), steps_.kernels<ArrayKernels>(), spec);
  }

 private:
  std::unique_ptr<ConvolutionKernel> make_kernel() {
    ConvolutionSpec spec;
    spec.shape = convolution_shape(steps_.parts(), i_.value, steps_.tile());
    spec.direction = direction_;
    spec.threads = steps_.choice().inner ? steps_.parts().threads : 1;
    spec.copies = steps_.copies();
    spec.algorithm = steps_.choice().algorithms[static_cast<std::size_t>(direction_)];
    // Other convolutions of the pass than the one that it was chosen for.
    if (!fits(spec))
      spec.algorithm = direction_ == Direction::weights ? direct_or_gemm(steps_.parts(), steps_.choice(), spec.shape)
                                                        : Algorithm::direct;
    return ConvolutionKernel::make(steps_.parts().onednn, steps_.parts().isa, spec);
  }

  Operand fp32_tile() { return steps_.in_thread(steps_.tile() * fp32_.image_bytes()); }

  const Instruction& i_;
  StepBuilder& steps_;
  const Direction direction_;
  TensorLayout fp32_;  ///< the result's in fp32
  bool through_fp32_;  ///< it reads the image in fp32 while its result is bf16: through a tile in fp32
};

class ConvolutionOperation final : public Operation {
 public:
  /// The only operation that reads the image as it is.
  void reads(std::span<TensorKind> sources) const override {
    if (sources[0] == TensorKind::features) sources[0] = TensorKind::spatial;
  }
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::spatial; }
  OperationTraits traits(const Node&) const override {
    return {.reads_tile = ReadsTile::always,
            .shares_pass = true,
            .backward_reads_source = true,
            .weight_gradient_apart = true};
  }
  void compile(const Instruction& instruction, StepBuilder& steps) const override {
    Compiler compiler(instruction, steps);
    if (instruction.kind == InstructionKind::weight_gradient)
      compiler.add_weight_gradient();
    else
      compiler.add_convolution();
  }
};

}  // namespace

template <>
const Operation& operation_for<Convolution>() {
  static const ConvolutionOperation operation;
  return operation;
}

ConvolutionShape convolution_shape(const ProgramParts& parts, int id, Index images) {
  const Value& value = parts.lowering.value(id);
  const int source = value.sources[0];
  const auto& c = std::get<Convolution>(parts.node(value).attributes);
  const bool plain = parts.plain(source);
  return {.images = images,
          .in = c.in,
          .out = c.out,
          .height = parts.layout(source).height,
          .width = parts.layout(source).width,
          .kernel = c.kernel,
          .kernel_w = c.s(),
          .stride = c.stride,
          .pad = c.pad,
          .pad_w = c.pad_s(),
          .groups = c.groups,
          .bias = c.bias,
          .reads_plain = plain,
          .format = parts.geometry.format,
          .storage = plain ? Storage::f32 : parts.geometry.storage};
}

}  // namespace convoy::cpu
