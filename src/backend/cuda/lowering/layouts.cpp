// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/layouts.hpp"

#include <span>
#include <utility>

#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

class Layouts final : public lowering::LayoutPolicy {
 public:
  Layouts(const Plan& plan, const CopyLayout& copies, Index height, Index width)
      : plan_(plan), copies_(copies), shapes_(infer_shapes(plan.graph, height, width)) {}

  void reads(NodeId id, std::span<Layout> layouts) const override {
    std::visit([&](const auto& attributes) { read(id, layouts, attributes); }, node(id).attributes);
  }
  Layout makes(NodeId id, std::span<const Layout> sources) const override {
    return std::visit([&](const auto& attributes) { return make(id, sources, attributes); }, node(id).attributes);
  }
  bool bias_is_term() const override { return true; }

 private:
  const Node& node(NodeId id) const { return plan_.graph.nodes[static_cast<std::size_t>(id)]; }
  const Shape& shape(NodeId id) const { return shapes_[static_cast<std::size_t>(id)]; }
  Index stored_channels(NodeId id) const {
    return copies_.rows[static_cast<std::size_t>(lowering::parameter_row(plan_, id, 0))].stored_c;
  }

  /// Flattened tensors stay n h w c in memory, which only linear layers and pointwise nodes may see.
  void require_order(NodeId id, std::size_t input, const Layout& layout) const {
    const Shape& seen = shape(node(id).inputs[input]);
    if (seen.h != layout.h || seen.w != layout.w)
      fail(
          Exit::device,
          "node '{}' reads a flattened tensor of {} x {} pixels (the CUDA backend takes those into linear layers only); put a linear layer or a global pool before it",
          node(id).name, layout.h, layout.w);
  }

  /// Operations read the channels that the network sees, unless they say something else below.
  void read(NodeId id, std::span<Layout> layouts, const auto&) const {
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      layouts[i].c = shape(node(id).inputs[i]).c;
      require_order(id, i, layouts[i]);
    }
  }
  void read(NodeId id, std::span<Layout> layouts, const Convolution& convolution) const {
    layouts[0].c = stored_channels(id) * convolution.groups;
    require_order(id, 0, layouts[0]);
  }
  void read(NodeId id, std::span<Layout> layouts, const Linear&) const { layouts[0].c = stored_channels(id); }
  void read(NodeId id, std::span<Layout> layouts, const Pool&) const { require_order(id, 0, layouts[0]); }
  void read(NodeId id, std::span<Layout> layouts, const GlobalAveragePool&) const { require_order(id, 0, layouts[0]); }
  void read(NodeId, std::span<Layout>, const Dropout&) const {}
  void read(NodeId, std::span<Layout>, const Activation&) const {}
  void read(NodeId, std::span<Layout>, const Flatten&) const {}
  /// Norms have no padding channels; what else comes from the image may have some.
  void read(NodeId id, std::span<Layout> layouts, const Add&) const {
    if (layouts[0].c != layouts[1].c)
      for (Layout& layout : layouts) layout.c = shape(id).c;
    if (layouts[0] != layouts[1])
      fail(Exit::device,
           "node '{}' adds tensors that the CUDA backend stores in different orders; flatten the sum instead",
           node(id).name);
  }
  void read(NodeId id, std::span<Layout> layouts, const Loss&) const {
    layouts[0].c = plan_.graph.classes;
    if (pixels_of(layouts[0]) != 1)
      fail(
          Exit::device,
          "node '{}' makes logits of {} x {} pixels (the CUDA backend takes rows); put a linear layer or a global pool behind it",
          node(node(id).inputs[0]).name, layouts[0].h, layouts[0].w);
  }

  Layout make(NodeId id, std::span<const Layout>, const auto&) const {
    return {.h = shape(id).h, .w = shape(id).w, .c = shape(id).c};
  }
  Layout make(NodeId id, std::span<const Layout>, const Input& image) const {
    return {.h = shape(id).h, .w = shape(id).w, .c = image_channels(image.channels)};
  }
  Layout make(NodeId id, std::span<const Layout> sources, const Pool&) const {
    return {.h = shape(id).h, .w = shape(id).w, .c = sources[0].c};
  }
  Layout make(NodeId id, std::span<const Layout> sources, const GlobalAveragePool&) const {
    return {.h = shape(id).h, .w = shape(id).w, .c = sources[0].c};
  }
  Layout make(NodeId, std::span<const Layout> sources, const Dropout&) const { return sources[0]; }

  const Plan& plan_;
  const CopyLayout& copies_;
  const std::vector<Shape> shapes_;
};

}  // namespace

Lowering lower(const Plan& plan, const CopyLayout& copies, const CompileSpec& spec) {
  Lowering lowering = lowering::lower(plan, Layouts(plan, copies, spec.height, spec.width), spec.mode);
  for (Value& value : lowering.values)
    if (joins(value) && value.terms[0].norm < 0) std::swap(value.terms[0], value.terms[1]);
  return lowering;
}

bool is_convolution(const Plan& plan, const Value& value) {
  if (value.kind != ValueKind::operation) return false;
  const Node& node = plan.graph.nodes[static_cast<std::size_t>(value.node)];
  return as<Convolution>(node) != nullptr || as<Linear>(node) != nullptr;
}

ConvolutionShape convolution_shape(const Plan& plan, const Lowering& lowering, const Value& value) {
  const Node& node = plan.graph.nodes[static_cast<std::size_t>(value.node)];
  const Layout& source = lowering.value(value.sources[0]).layout;
  if (const auto* linear = as<Linear>(node))
    return {.reads = {.h = 1, .w = 1, .c = elements_of(source)}, .k = linear->out};
  const auto& convolution = std::get<Convolution>(node.attributes);
  return {.reads = source,
          .k = convolution.out,
          .r = convolution.kernel,
          .s = convolution.s(),
          .pad = convolution.pad,
          .pad_w = convolution.pad_s(),
          .stride = convolution.stride,
          .groups = convolution.groups};
}

}  // namespace convoy::cuda
