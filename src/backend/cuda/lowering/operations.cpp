// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/operations.hpp"

#include <algorithm>

#include "backend/cuda/kernels/dense.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// A winner's place is one byte, r * kernel + s.
constexpr int largest_max_window = 15;
/// Of one row, twice, in the shared memory that every kernel has.
constexpr Index most_response_channels = 4096;

const std::string& name_of(const Assembler& assembler, int id) {
  return assembler.plan().graph.nodes[static_cast<std::size_t>(assembler.value(id).node)].name;
}

template <class T>
const T& attributes_of(const Assembler& assembler, int id) {
  return std::get<T>(assembler.plan().graph.nodes[static_cast<std::size_t>(assembler.value(id).node)].attributes);
}

}  // namespace

PoolShape pool_shape(const Assembler& assembler, int id) {
  const Value& value = assembler.value(id);
  const Extent& x = assembler.value(value.source).extent;
  const auto& pool = attributes_of<Pool>(assembler, id);
  if (pool.mode == Pool::Mode::max && pool.kernel > largest_max_window)
    fail(Exit::device,
         "node '{}' takes the maximum of {} x {} pixels (the CUDA backend of {} x {} at most); use average pooling or "
         "--device cpu",
         name_of(assembler, id), pool.kernel, pool.kernel, largest_max_window, largest_max_window);
  return {.storage = assembler.storage(),
          .n = static_cast<int>(assembler.samples()),
          .h = static_cast<int>(x.h),
          .w = static_cast<int>(x.w),
          .p = static_cast<int>(value.extent.h),
          .q = static_cast<int>(value.extent.w),
          .channels = value.extent.c,
          .kernel = pool.kernel,
          .stride = pool.stride,
          .pad = pool.pad,
          .count_padding = pool.count_padding};
}

LocalResponse response_of(const Assembler& assembler, int id) {
  const auto& norm = attributes_of<LocalResponseNorm>(assembler, id);
  const Index channels = assembler.value(id).extent.c;
  if (channels > most_response_channels)
    fail(Exit::device,
         "node '{}' is a local response norm of {} channels (the CUDA backend takes {} at most); use --device cpu",
         name_of(assembler, id), channels, most_response_channels);
  return {.storage = assembler.storage(),
          .rows = assembler.rows(id),
          .channels = channels,
          .size = norm.size,
          .alpha = norm.alpha,
          .beta = norm.beta,
          .k = norm.k};
}

void add_dropout(Assembler& assembler, int id, Place x, Place y) {
  const Value& value = assembler.value(id);
  const Shape& shape = assembler.shape(value.node);
  const DropoutPass pass{.storage = assembler.storage(),
                         .n = assembler.samples(),
                         .pixels = value.extent.pixels(),
                         .channels = shape.count() / value.extent.pixels(),
                         .stored_channels = value.extent.c,
                         .rate = attributes_of<Dropout>(assembler, id).rate,
                         .node = value.node};
  assembler.add_step("dropout", value.nodes, {x}, {y}, [=](const Frame& frame) {
    DropoutPass now = pass;
    now.step = frame.step;
    now.rows = frame.rows;
    now.x = frame.at(x);
    now.y = frame.at(y);
    check(dropout(now, frame.stream), "a dropout");
  });
}

void add_repack(Assembler& assembler, Repacked values, Place x, Place y) {
  const Index from = assembler.value(values.from).extent.c, to = assembler.value(values.to).extent.c;
  const RowsCopy copy{.rows = assembler.rows(values.from),
                      .columns = std::min(from, to),
                      .from_columns = from,
                      .from_storage = assembler.storage(),
                      .to_columns = to,
                      .to_storage = assembler.storage()};
  assembler.add_step("repack", assembler.value(values.to).nodes, {x}, {y}, [=](const Frame& frame) {
    RowsCopy now = copy;
    now.from = frame.at(x);
    now.to = frame.at(y);
    check(copy_rows(now, frame.stream), "the packing of channels");
  });
}

}  // namespace convoy::cuda
