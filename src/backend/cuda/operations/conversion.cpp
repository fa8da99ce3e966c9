// SPDX-License-Identifier: Apache-2.0
// Values with another number of stored channels: the image has more of them than the network's input, and so has what
// is made of the image.
#include "backend/cuda/operations/conversion.hpp"

#include <algorithm>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

/// The channels of `from` in the layout of `to`.
void add_copy(PlanBuilder& builder, int from, int to, BufferRef x, BufferRef y) {
  const Index from_channels = builder.value(from).layout.c, to_channels = builder.value(to).layout.c;
  const RowsCopy copy{.rows = builder.rows(from),
                      .columns = std::min(from_channels, to_channels),
                      .from_columns = from_channels,
                      .from_storage = builder.storage(),
                      .to_columns = to_channels,
                      .to_storage = builder.storage()};
  builder.add_step("repack", builder.value(to).nodes, {x}, {y}, [=](const LaunchContext& launch) {
    RowsCopy now = copy;
    now.from = launch.at(x);
    now.to = launch.at(y);
    check(copy_rows(now, launch.stream), "the packing of channels");
  });
}

}  // namespace

void convert(ForwardPass& pass, int id) {
  const int source = pass.builder.value(id).sources[0];
  const BufferRef x = pass.read(source), y = pass.make(id);
  add_copy(pass.builder, source, id, x, y);
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void convert_gradient(BackwardPass& pass, int id) {
  const int source = pass.builder.value(id).sources[0];
  const BufferRef dy = pass.gradient(id);
  if (!pass.wants_gradient(source)) return;
  const BufferRef dx = pass.builder.add_tensor(source);
  add_copy(pass.builder, id, source, dy, dx);
  pass.contribute(source, dx);
}

}  // namespace convoy::cuda
