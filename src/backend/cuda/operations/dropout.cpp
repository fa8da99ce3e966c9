// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/dropout.hpp"

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

/// y = x times the mask; the same for the gradient.
void add_dropout(PlanBuilder& builder, int id, float rate, BufferRef x, BufferRef y) {
  const Value& value = builder.value(id);
  const DropoutPass pass{.storage = builder.storage(),
                         .n = builder.samples(),
                         .pixels = pixels_of(value.layout),
                         .channels = builder.shape(value.node).count() / pixels_of(value.layout),
                         .stored_channels = value.layout.c,
                         .rate = rate,
                         .node = value.node};
  builder.add_step("dropout", value.nodes, {x}, {y}, [=](const LaunchContext& launch) {
    DropoutPass now = pass;
    now.step = launch.step;
    now.rows = launch.rows;
    now.x = launch.at(x);
    now.y = launch.at(y);
    check(dropout(now, launch.stream), "a dropout");
  });
}

}  // namespace

void forward(ForwardPass& pass, int id, const Dropout& dropout) {
  const BufferRef x = pass.read(pass.builder.value(id).sources[0]);
  if (pass.builder.training()) {
    add_dropout(pass.builder, id, dropout.rate, x, pass.make(id));
  } else {
    pass.tensor(id).value = x;
  }
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void backward(BackwardPass& pass, int id, const Dropout& dropout) {
  const int source = pass.builder.value(id).sources[0];
  const BufferRef dy = pass.gradient(id);
  if (!pass.wants_gradient(source)) return;
  const BufferRef dx = pass.builder.add_tensor(source);
  add_dropout(pass.builder, id, dropout.rate, dy, dx);
  pass.contribute(source, dx);
}

}  // namespace convoy::cuda
