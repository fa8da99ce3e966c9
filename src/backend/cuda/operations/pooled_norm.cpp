// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/pooled_norm.hpp"

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {

void differentiate_pooled_norm(BackwardPass& pass, int id, const Pool& pool) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const int source = value.sources[0];
  const Term term = builder.value(source).terms[0];
  const std::vector<BufferRef> dy = pass.contributions(id, 2);
  const BufferRef first = dy[0], more = dy.size() > 1 ? dy[1] : BufferRef{};
  const BufferRef argmax = pass.forward.tensor(id).argmax, x = pass.forward.tensor(term.value).value;
  const BufferRef scale = builder.vector(term.norm, NormVector::scale);
  const BufferRef shift = builder.vector(term.norm, NormVector::shift);
  const PooledGradient gradient{.shape = pool_shape(builder, id, pool),
                                .activation = {builder.value(source).activation, builder.value(source).slope}};
  const auto from = [=](const LaunchContext& launch) {
    PooledGradient now = gradient;
    now.dy = launch.at(first);
    now.dy_more = launch.at(more);
    now.argmax = static_cast<const std::uint8_t*>(launch.at(argmax));
    now.x = launch.at(x);
    now.scale = launch.floats(scale);
    now.shift = launch.floats(shift);
    return now;
  };
  std::vector<NodeId> nodes = builder.value(source).nodes;
  nodes.insert(nodes.end(), value.nodes.begin(), value.nodes.end());
  const Index channels = value.layout.c;
  const ReductionRefs place = builder.add_reduction(builder.rows(source), channels, 2);
  const bool shared = builder.synchronised();
  const BufferRef totals = shared ? builder.add_floats(2 * channels) : BufferRef{};
  const auto end = end_in_reduction(builder, shared ? std::vector<int>{} : std::vector<int>{term.norm});
  const BufferRef mean = builder.vector(term.norm, NormVector::mean);
  builder.add_step("norm sums of a max pool", nodes, {first, more, argmax, x}, {place.sums, totals},
                   [=](const LaunchContext& launch) {
                     PooledReduce now{.from = from(launch), .mean = launch.floats(mean), .place = place.at(launch)};
                     now.end = end(launch);
                     now.end.totals = launch.floats(totals);
                     check(reduce_pooled(now, launch.stream), "the sums of a pooled batch norm's gradient");
                   });
  if (shared) {
    finish_norms(pass, {{term.norm, totals, totals.after_floats(channels)}});
  } else {
    finish_norm_rows(builder, term.norm);
  }
  pass.finish(source);
  pass.complete(source);
  if (!pass.wants_gradient(term.value)) return;
  const BufferRef dx = builder.add_tensor(source);
  const NormRefs v = builder.vectors(term.norm, {NormVector::a, NormVector::b, NormVector::d});
  builder.add_step("apply gradient of a max pool", nodes, {first, more, argmax, x}, {dx},
                   [=](const LaunchContext& launch) {
                     const PooledApply now{.from = from(launch),
                                           .a = launch.floats(v[NormVector::a]),
                                           .b = launch.floats(v[NormVector::b]),
                                           .d = launch.floats(v[NormVector::d]),
                                           .dx = launch.at(dx)};
                     check(apply_pooled(now, launch.stream), "the gradient of a pooled batch norm");
                   });
  pass.contribute(term.value, dx);
}

}  // namespace convoy::cuda
