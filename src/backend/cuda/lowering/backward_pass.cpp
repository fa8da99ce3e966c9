// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/backward_pass.hpp"

#include <algorithm>
#include <utility>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/operations/pointwise.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {

BackwardPass::BackwardPass(const ForwardPass& forward_pass)
    : builder(forward_pass.builder),
      selector(forward_pass.selector),
      forward(forward_pass),
      gradients_(builder.values().size()) {
  for (const Value& value : builder.values()) {
    if (!value.used || !value.wants_gradient) continue;
    for (const int source : value.sources) ++gradients_[index_of(source)].missing;
    for (const Term& term : value.terms) ++gradients_[index_of(term.value)].missing;
  }
}

void BackwardPass::run() {
  builder.enter(Section::backward);
  for (int id = builder.value_count(); id-- > 0;) {
    const Value& value = builder.value(id);
    if (!value.used || !value.wants_gradient || gradients_[index_of(id)].finished) continue;
    switch (value.kind) {
      case ValueKind::input:
      case ValueKind::operation:
      case ValueKind::loss:
        std::visit([&](const auto& attributes) { backward(*this, id, attributes); }, builder.node(id).attributes);
        break;
      case ValueKind::conversion:
        convert_gradient(*this, id);
        break;
      case ValueKind::group: {
        const std::size_t begin = builder.steps();
        differentiate(*this, id);
        builder.tag(begin, id);
        break;
      }
    }
  }
}

std::optional<NormSums> BackwardPass::take_gradients(int norm) {
  const auto found =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const NormSums& sums) { return sums.norm == norm; });
  if (found == waiting_.end()) return std::nullopt;
  const NormSums sums = *found;
  waiting_.erase(found);
  return sums;
}

void BackwardPass::contribute(int id, BufferRef gradient) {
  --gradients_[index_of(id)].missing;
  gradients_[index_of(id)].contributions.push_back(gradient);
}

std::vector<BufferRef> BackwardPass::contributions(int id, std::size_t most) {
  std::vector<BufferRef> rest = std::move(gradients_[index_of(id)].contributions);
  require(!rest.empty() && missing(id) == 0, "a gradient without all of its contributions");
  while (rest.size() > most) {
    const BufferRef first = rest[rest.size() - 1], second = rest[rest.size() - 2], sum = builder.add_tensor(id);
    rest.resize(rest.size() - 2);
    rest.push_back(sum);
    const BackwardApply add{
        .storage = builder.storage(), .rows = builder.rows(id), .channels = builder.value(id).layout.c};
    builder.add_step("add gradients", builder.value(id).nodes, {first, second}, {sum},
                     [=](const LaunchContext& launch) {
                       BackwardApply now = add;
                       now.from.dz = launch.at(first);
                       now.from.dz_more = launch.at(second);
                       now.dx = launch.at(sum);
                       check(apply_backward(now, launch.stream), "a sum of gradients");
                     });
  }
  return rest;
}

}  // namespace convoy::cuda
