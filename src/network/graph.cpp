// SPDX-License-Identifier: Apache-2.0
#include "network/graph.hpp"

#include <cstddef>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// Output shape of one node, by operation.
class ShapeRule {
 public:
  ShapeRule(const Node& node, std::vector<Shape> in, Shape image, Index classes)
      : node_(node), in_(std::move(in)), image_(image), classes_(classes) {}

  Shape operator()(const Input& input) const { return {input.channels, image_.h, image_.w}; }
  Shape operator()(const Convolution& convolution) const {
    if (from().c != convolution.in)
      fail(Exit::usage, "node '{}' takes {} channels but gets {} (graph built wrongly)", node_.name, convolution.in,
           from().c);
    return {convolution.out, slide(from().h, convolution), slide(from().w, convolution)};
  }
  Shape operator()(const BatchNorm& norm) const {
    if (from().c != norm.channels)
      fail(Exit::usage, "node '{}' takes {} channels but gets {} (graph built wrongly)", node_.name, norm.channels,
           from().c);
    return from();
  }
  Shape operator()(const Activation&) const { return from(); }
  Shape operator()(const Pool& pool) const { return {from().c, slide(from().h, pool), slide(from().w, pool)}; }
  Shape operator()(const GlobalAveragePool&) const { return {from().c}; }
  Shape operator()(const Linear& linear) const {
    if (from().count() != linear.in)
      fail(Exit::usage,
           "node '{}' takes {} values but gets {} (images of {} x {}); build the network for this image size",
           node_.name, linear.in, from().count(), image_.h, image_.w);
    return {linear.out};
  }
  Shape operator()(const LocalResponseNorm&) const { return from(); }
  Shape operator()(const Dropout&) const { return from(); }
  Shape operator()(const Add&) const {
    if (in_[0] != in_[1])
      fail(Exit::usage, "node '{}' adds {} x {} x {} and {} x {} x {} (graph built wrongly)", node_.name, in_[0].c,
           in_[0].h, in_[0].w, in_[1].c, in_[1].h, in_[1].w);
    return in_[0];
  }
  Shape operator()(const Flatten&) const { return {from().count()}; }
  Shape operator()(const Loss&) const {
    if (from().count() != classes_)
      fail(Exit::usage, "node '{}' gets {} logits for {} classes (graph built wrongly)", node_.name, from().count(),
           classes_);
    return {1};
  }

 private:
  const Shape& from() const { return in_.at(0); }

  /// Positions of a window along one side.
  template <class Window>
  Index slide(Index side, const Window& window) const {
    const Index room = side + 2 * window.pad - window.kernel;
    if (room < 0)
      fail(Exit::usage,
           "images of {} x {} are too small for this network (node '{}' has {} x {} left for a window of {})", image_.h,
           image_.w, node_.name, from().h, from().w, window.kernel);
    return room / window.stride + 1;
  }

  const Node& node_;
  std::vector<Shape> in_;
  Shape image_;
  Index classes_;
};

}  // namespace

std::vector<Shape> infer_shapes(const Graph& graph, Index height, Index width) {
  if (height < 1 || width < 1) fail(Exit::usage, "images of {} x {} (need at least 1 x 1)", height, width);
  std::vector<Shape> shapes;
  shapes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    std::vector<Shape> in;
    for (const NodeId from : node.inputs) in.push_back(shapes.at(static_cast<std::size_t>(from)));
    shapes.push_back(
        std::visit(ShapeRule(node, std::move(in), Shape{0, height, width}, graph.classes), node.attributes));
  }
  return shapes;
}

}  // namespace convoy
