// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/local_response_norm.hpp"

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// One row takes twice so many floats of the shared memory that every kernel has.
constexpr Index most_channels = 4096;

LocalResponse response_of(const PlanBuilder& builder, int id, const LocalResponseNorm& norm) {
  const Index channels = builder.value(id).layout.c;
  if (channels > most_channels)
    fail(Exit::device,
         "node '{}' is a local response norm of {} channels (the CUDA backend takes {} at most); use --device cpu",
         builder.node(id).name, channels, most_channels);
  return {.storage = builder.storage(),
          .rows = builder.rows(id),
          .channels = channels,
          .size = norm.size,
          .alpha = norm.alpha,
          .beta = norm.beta,
          .k = norm.k};
}

}  // namespace

void forward(ForwardPass& pass, int id, const LocalResponseNorm& attributes) {
  const Value& value = pass.builder.value(id);
  const BufferRef x = pass.read(value.sources[0]), y = pass.make(id);
  const LocalResponse norm = response_of(pass.builder, id, attributes);
  pass.builder.add_step("local response", value.nodes, {x}, {y}, [=](const LaunchContext& launch) {
    check(local_response(norm, launch.at(x), launch.at(y), launch.stream), "a local response norm");
  });
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void backward(BackwardPass& pass, int id, const LocalResponseNorm& attributes) {
  const Value& value = pass.builder.value(id);
  const BufferRef dy = pass.gradient(id), x = pass.forward.tensor(value.sources[0]).value;
  if (!pass.wants_gradient(value.sources[0])) return;
  const BufferRef dx = pass.builder.add_tensor(value.sources[0]);
  const LocalResponse norm = response_of(pass.builder, id, attributes);
  pass.builder.add_step("local response gradient", value.nodes, {x, dy}, {dx}, [=](const LaunchContext& launch) {
    check(local_response_backward(norm, launch.at(x), launch.at(dy), launch.at(dx), launch.stream),
          "the gradient of a local response norm");
  });
  pass.contribute(value.sources[0], dx);
}

}  // namespace convoy::cuda
