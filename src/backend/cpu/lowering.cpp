// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lowering.hpp"

#include <algorithm>

#include "backend/cpu/operation.hpp"

namespace convoy::cpu {
namespace {

/// Groups take images in the program's format, and two terms of one kind.
void group_reads(std::span<TensorKind> terms) {
  if (terms.size() > 1) return read_alike(terms);
  if (terms[0] == TensorKind::image) terms[0] = TensorKind::spatial;
}

class CpuLayouts final : public lowering::LayoutPolicy {
 public:
  explicit CpuLayouts(const Graph& graph) : graph_(graph) {}

  void reads(NodeId id, std::span<lowering::Layout> layouts) const override {
    const Node& node = graph_.nodes[static_cast<std::size_t>(id)];
    std::vector<TensorKind> kinds = kinds_of(layouts);
    if (as<BatchNorm>(node) || as<Activation>(node) || as<Add>(node)) {
      group_reads(kinds);
    } else if (as<Flatten>(node)) {
      kinds[0] = TensorKind::features;
    } else {
      operation_of(node).reads(kinds);
    }
    for (std::size_t i = 0; i < kinds.size(); ++i) layouts[i] = {.order = static_cast<int>(kinds[i])};
  }

  lowering::Layout makes(NodeId id, std::span<const lowering::Layout> sources) const override {
    const TensorKind made = operation_of(graph_.nodes[static_cast<std::size_t>(id)]).makes(kinds_of(sources));
    return {.order = static_cast<int>(made)};
  }

  bool bias_is_term() const override { return false; }

 private:
  static std::vector<TensorKind> kinds_of(std::span<const lowering::Layout> layouts) {
    std::vector<TensorKind> kinds;
    for (const lowering::Layout& layout : layouts) kinds.push_back(static_cast<TensorKind>(layout.order));
    return kinds;
  }

  const Graph& graph_;
};

}  // namespace

void read_alike(std::span<TensorKind> kinds) {
  const bool features = std::all_of(kinds.begin(), kinds.end(), [](TensorKind k) { return k == TensorKind::features; });
  std::fill(kinds.begin(), kinds.end(), features ? TensorKind::features : TensorKind::spatial);
}

Lowering lower(const Plan& plan, Mode mode) { return lowering::lower(plan, CpuLayouts(plan.graph), mode); }

}  // namespace convoy::cpu
