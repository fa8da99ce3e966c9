// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/forward_pass.hpp"

#include <algorithm>
#include <utility>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {

ForwardPass::ForwardPass(PlanBuilder& plan_builder, KernelSelector& kernel_selector)
    : builder(plan_builder), selector(kernel_selector), tensors_(plan_builder.values().size()) {}

void ForwardPass::run() {
  for (int id = 0; id < builder.value_count(); ++id) {
    const Value& value = builder.value(id);
    if (!value.used || is_stored(id)) continue;
    switch (value.kind) {
      case ValueKind::input:
      case ValueKind::operation:
      case ValueKind::loss:
        std::visit([&](const auto& attributes) { forward(*this, id, attributes); }, builder.node(id).attributes);
        break;
      case ValueKind::conversion:
        convert(*this, id);
        break;
      case ValueKind::group:  // evaluated where it is first read
        break;
    }
    if (id == 0) add_evaluation_norms(*this);
  }
  std::vector<int> rest;  // of values that the loss doesn't depend on, and what the backward pass alone reads
  for (const auto& [norm, waiting] : waiting_) rest.push_back(norm);
  settle(rest);
}

void ForwardPass::settle(std::vector<int> norms) {
  norms.erase(std::remove_if(norms.begin(), norms.end(), [&](int norm) { return waiting_.count(norm) == 0; }),
              norms.end());
  for (std::size_t first = 0; first < norms.size(); first += most_finished) {
    const std::size_t count = std::min<std::size_t>(most_finished, norms.size() - first);
    std::vector<NodeId> nodes;
    std::vector<BufferRef> reads;
    std::vector<std::function<NormFinish(const LaunchContext&)>> finishes;
    for (std::size_t i = first; i < first + count; ++i) {
      auto waiting = waiting_.extract(norms[i]);
      nodes.push_back(builder.norm(norms[i]).node);
      reads.insert(reads.end(), waiting.mapped().reads.begin(), waiting.mapped().reads.end());
      finishes.push_back(std::move(waiting.mapped().finish));
    }
    builder.add_step("norm", std::move(nodes), reads, {}, [=](const LaunchContext& launch) {
      NormFinish now[most_finished];
      for (std::size_t i = 0; i < finishes.size(); ++i) now[i] = finishes[i](launch);
      check(finish_statistics(now, static_cast<int>(finishes.size()), launch.stream), "the statistics of a batch norm");
    });
  }
}

BufferRef ForwardPass::read(int id) {
  if (is_stored(id)) return tensor(id).value;
  require(builder.value(id).kind == ValueKind::group, "an operation is read before it ran");
  return evaluate(*this, id);
}

bool ForwardPass::needs_statistics(int id) const {
  return builder.mode() != Mode::evaluate && !builder.value(id).norms.empty();
}

}  // namespace convoy::cuda
