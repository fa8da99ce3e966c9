// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution_kernel.hpp"

#include <omp.h>

#include <array>
#include <utility>
#include <vector>

#include "backend/cpu/gemm/weight_gradient.hpp"
#include "backend/cpu/grouped/grouped.hpp"
#include "backend/cpu/onednn_compat.hpp"
#include "backend/cpu/onednn_handles.hpp"
#include "backend/cpu/winograd/winograd.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {

using dnnl::memory;
using Tag = memory::format_tag;

Onednn::Onednn(int threads) : handles_(std::make_unique<Handles>()) {
  handles_->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  for (int i = 0; i < threads; ++i) handles_->streams.emplace_back(handles_->engine);
}
Onednn::~Onednn() = default;

namespace {

/// A reorder between the canonical and a kernel's own weights.
struct Reorder {
  dnnl::primitive primitive;
  memory from, to;
  std::array<dnnl_exec_arg_t, 2> arguments{};

  Reorder(const dnnl::engine& engine, const memory::desc& a, const memory::desc& b)
      : primitive(dnnl::reorder::primitive_desc(engine, a, engine, b).get()),
        from(a, engine, nullptr),
        to(b, engine, nullptr),
        arguments{{{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}}} {}
};

bool set(const memory& m, const void* data) {
  return dnnl_memory_set_data_handle(m.get(), const_cast<void*>(data)) == dnnl_success;
}

/// A primitive's thread number is fixed when it is made.
class ThreadsForMaking {
 public:
  explicit ThreadsForMaking(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ThreadsForMaking(const ThreadsForMaking&) = delete;
  ThreadsForMaking& operator=(const ThreadsForMaking&) = delete;
  ~ThreadsForMaking() { omp_set_num_threads(before_); }

 private:
  int before_;
};

class OnednnKernel final : public ConvolutionKernel {
 public:
  /// Null where the library has nothing but its reference, which makes a hundredth of what the machine can.
  static std::unique_ptr<ConvolutionKernel> make(const Onednn& library, const ConvolutionSpec& spec);

  Index packed_bytes() const override { return packed_bytes_; }
  Index scratch_bytes() const override { return scratch_bytes_; }
  void pack(const float* weights, void* packed) const override;
  void unpack(const void* packed, float* weights) const override;
  bool execute(const ConvolutionData& data) const override;
  std::string name() const override { return name_; }

 private:
  /// What one thread executes with.
  struct Copy {
    memory source, packed, bias, result, scratch;
    std::array<dnnl_exec_arg_t, 5> arguments{};
  };
  dnnl::primitive primitive_;
  std::vector<Copy> copies_;
  std::vector<dnnl::stream> streams_;
  std::unique_ptr<Reorder> reorder_;
  Index packed_bytes_ = 0, scratch_bytes_ = 0;
  bool bias_ = false;
  std::string name_;
};

std::unique_ptr<ConvolutionKernel> OnednnKernel::make(const Onednn& library, const ConvolutionSpec& spec) {
  const ThreadsForMaking guard(spec.threads);
  const ConvolutionShape& s = spec.shape;
  const auto& engine = library.handles().engine;
  const auto type = s.storage == Storage::f32 ? memory::data_type::f32 : memory::data_type::bf16;
  const Tag format = s.format == MemoryFormat::blocked ? Tag::nChw16c : Tag::nhwc;
  const Index p = s.p(), q = s.q();
  const bool weights_gradient = spec.direction == Direction::weights;

  memory::dims filter{s.out, s.in, s.kernel, s.kernel_w};
  Tag canonical_tag = Tag::oihw;
  if (s.groups > 1) {
    filter = {s.groups, s.out / s.groups, s.in / s.groups, s.kernel, s.kernel_w};
    canonical_tag = Tag::goihw;
  }
  onednn::ConvolutionDescriptors d;
  d.source = memory::desc({s.images, s.in, s.height, s.width}, type, s.reads_plain ? Tag::nchw : format);
  d.weights = memory::desc(filter, type, Tag::any);
  const bool bias = s.bias && spec.direction != Direction::data;
  if (bias) d.bias = memory::desc({s.out}, memory::data_type::f32, Tag::x);
  d.result = memory::desc({s.images, s.out, p, q}, type, format);
  d.strides = {s.stride, s.stride};
  d.padding = {s.pad, s.pad_w};

  auto kernel = std::make_unique<OnednnKernel>();
  kernel->bias_ = bias;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  memory::desc source, packed, result, scratch;
  const auto take = [&](const auto& descriptor, const memory::desc& from, const memory::desc& weights,
                        const memory::desc& to) {
    kernel->primitive_ = dnnl::primitive(descriptor.get());
    kernel->name_ = descriptor.impl_info_str();
    source = from;
    packed = weights;
    result = to;
    scratch = descriptor.scratchpad_desc();
  };
  try {
    // Backward descriptors want a forward one of the same kind as a hint.
    const auto kind = dnnl::prop_kind::forward_training;
    const auto forward = onednn::forward_of(d, kind, attributes, engine);
    if (spec.direction == Direction::forward) {
      take(forward, forward.src_desc(), forward.weights_desc(), forward.dst_desc());
    } else if (spec.direction == Direction::data) {
      const auto backward = onednn::backward_data_of(d, forward, attributes, engine);
      take(backward, backward.diff_src_desc(), backward.weights_desc(), backward.diff_dst_desc());
    } else {
      d.weights = memory::desc(filter, memory::data_type::f32, Tag::any);  // sums of bf16 products stay in fp32
      const auto backward = onednn::backward_weights_of(d, forward, attributes, engine);
      take(backward, backward.src_desc(), backward.diff_weights_desc(), backward.diff_dst_desc());
    }
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return nullptr;
    fail(Exit::device, "oneDNN failed to make a convolution of {}x{} channels, kernel {}x{}, stride {}, {} groups ({})",
         s.out, s.in, s.kernel, s.kernel_w, s.stride, s.groups, error.what());
  }
  if (kernel->name_.starts_with("ref")) return nullptr;

  const int source_argument = spec.direction == Direction::data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
  const int result_argument = spec.direction == Direction::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
  for (int i = 0; i < spec.copies; ++i) {
    Copy copy;
    copy.source = memory(source, engine, nullptr);
    copy.packed = memory(packed, engine, nullptr);
    copy.bias = memory(bias ? d.bias : memory::desc(), engine, nullptr);
    copy.result = memory(result, engine, nullptr);
    copy.scratch = memory(scratch, engine, nullptr);
    copy.arguments = {{{source_argument, copy.source.get()},
                       {weights_gradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, copy.packed.get()},
                       {result_argument, copy.result.get()},
                       {DNNL_ARG_SCRATCHPAD, copy.scratch.get()},
                       {weights_gradient ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, copy.bias.get()}}};
    kernel->copies_.push_back(std::move(copy));
  }
  kernel->streams_ = library.handles().streams;
  kernel->packed_bytes_ = static_cast<Index>(packed.get_size());
  kernel->scratch_bytes_ = static_cast<Index>(scratch.get_size());
  const memory::desc canonical(filter, memory::data_type::f32, canonical_tag);
  const ThreadsForMaking all(static_cast<int>(kernel->streams_.size()));
  kernel->reorder_ = weights_gradient ? std::make_unique<Reorder>(engine, packed, canonical)
                                      : std::make_unique<Reorder>(engine, canonical, packed);
  return kernel;
}

void OnednnKernel::pack(const float* weights, void* packed) const {
  const Reorder& r = *reorder_;
  const bool good = set(r.from, weights) && set(r.to, packed) &&
                    dnnl_primitive_execute(r.primitive.get(), streams_[0].get(), 2, r.arguments.data()) == dnnl_success;
  if (!good) fail(Exit::device, "oneDNN failed to reorder weights");
}

void OnednnKernel::unpack(const void* packed, float* weights) const {
  pack(static_cast<const float*>(packed), weights);
}

bool OnednnKernel::execute(const ConvolutionData& data) const {
  const auto copy = static_cast<std::size_t>(data.copy);
  const Copy& c = copies_[copy];
  if (bias_ && !set(c.bias, data.bias)) return false;
  return set(c.source, data.source) && set(c.packed, data.packed) && set(c.result, data.result) &&
         set(c.scratch, data.scratch) &&
         dnnl_primitive_execute(primitive_.get(), streams_[copy].get(), bias_ ? 5 : 4, c.arguments.data()) ==
             dnnl_success;
}

}  // namespace

TensorLayout layout_of(const ConvolutionShape& s, Index channels, Index height, Index width, bool plain) {
  TensorLayout layout{.storage = s.storage, .channels = channels, .height = height, .width = width};
  const bool blocked = s.format == MemoryFormat::blocked && !plain;
  layout.pixel = plain ? 1 : (blocked ? lanes : channels);
  layout.block = blocked || plain ? lanes * layout.pixels() : lanes;
  layout.image = blocked ? layout.blocks() * layout.block : channels * layout.pixels();
  return layout;
}

std::unique_ptr<ConvolutionKernel> ConvolutionKernel::make(const Onednn& library, Isa isa,
                                                           const ConvolutionSpec& spec) {
  switch (spec.algorithm) {
    case Algorithm::direct:
      break;
    case Algorithm::winograd:
    case Algorithm::winograd_bf16:
      return make_winograd(isa, spec);
    case Algorithm::grouped:
      return make_grouped(isa, spec);
    case Algorithm::gemm:
      return make_gemm(isa, spec);
  }
  auto kernel = OnednnKernel::make(library, spec);
  return kernel ? std::move(kernel) : make_grouped(isa, spec);
}

}  // namespace convoy::cpu
