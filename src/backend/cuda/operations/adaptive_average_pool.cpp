// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/adaptive_average_pool.hpp"

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

AdaptivePool adaptive_pool_of(const PlanBuilder& builder, int id) {
  const Layout &y = builder.value(id).layout, &x = builder.value(builder.value(id).sources[0]).layout;
  return {.storage = builder.storage(),
          .n = static_cast<int>(builder.samples()),
          .h = static_cast<int>(x.h),
          .w = static_cast<int>(x.w),
          .p = static_cast<int>(y.h),
          .q = static_cast<int>(y.w),
          .channels = y.c};
}

}  // namespace

void forward(ForwardPass& pass, int id, const AdaptiveAveragePool&) {
  const Value& value = pass.builder.value(id);
  const BufferRef x = pass.read(value.sources[0]), y = pass.make(id);
  const AdaptivePool pool = adaptive_pool_of(pass.builder, id);
  pass.builder.add_step("adaptive pool", value.nodes, {x}, {y}, [=](const LaunchContext& launch) {
    check(adaptive_pool(pool, launch.at(x), launch.at(y), launch.stream), "adaptive pooling");
  });
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void backward(BackwardPass& pass, int id, const AdaptiveAveragePool&) {
  const Value& value = pass.builder.value(id);
  if (!pass.wants_gradient(value.sources[0])) return;
  const BufferRef dy = pass.gradient(id);
  const BufferRef dx = pass.builder.add_tensor(value.sources[0]);
  const AdaptivePool pool = adaptive_pool_of(pass.builder, id);
  pass.builder.add_step("adaptive pool gradient", value.nodes, {dy}, {dx}, [=](const LaunchContext& launch) {
    check(adaptive_pool_backward(pool, launch.at(dy), launch.at(dx), launch.stream),
          "the gradient of adaptive pooling");
  });
  pass.contribute(value.sources[0], dx);
}

}  // namespace convoy::cuda
