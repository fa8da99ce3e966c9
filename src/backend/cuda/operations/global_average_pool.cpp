// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/global_average_pool.hpp"

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

GlobalPool global_pool_of(const PlanBuilder& builder, int id) {
  const Value& value = builder.value(id);
  return {.storage = builder.storage(),
          .n = builder.samples(),
          .pixels = pixels_of(builder.value(value.sources[0]).layout),
          .channels = value.layout.c};
}

}  // namespace

void forward(ForwardPass& pass, int id, const GlobalAveragePool&) {
  const Value& value = pass.builder.value(id);
  const BufferRef x = pass.read(value.sources[0]), y = pass.make(id);
  const GlobalPool pool = global_pool_of(pass.builder, id);
  pass.builder.add_step("global pool", value.nodes, {x}, {y}, [=](const LaunchContext& launch) {
    check(global_pool(pool, launch.at(x), launch.at(y), launch.stream), "global pooling");
  });
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void backward(BackwardPass& pass, int id, const GlobalAveragePool&) {
  const Value& value = pass.builder.value(id);
  const BufferRef dy = pass.gradient(id);
  if (!pass.wants_gradient(value.sources[0])) return;
  const BufferRef dx = pass.builder.add_tensor(value.sources[0]);
  const GlobalPool pool = global_pool_of(pass.builder, id);
  pass.builder.add_step("global pool gradient", value.nodes, {dy}, {dx}, [=](const LaunchContext& launch) {
    check(global_pool_backward(pool, launch.at(dy), launch.at(dx), launch.stream), "the gradient of global pooling");
  });
  pass.contribute(value.sources[0], dx);
}

}  // namespace convoy::cuda
