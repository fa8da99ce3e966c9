// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/pool.hpp"

#include <utility>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// The place of a maximum in its window is one byte, r * kernel + s.
constexpr int largest_max_window = 15;

/// Whether the group that the pool reads is one norm and its activation, which nobody else reads.
bool evaluates_source(const ForwardPass& pass, int id) {
  const Value& source = pass.builder.value(pass.builder.value(id).sources[0]);
  return !pass.is_stored(pass.builder.value(id).sources[0]) && source.kind == ValueKind::group &&
         source.terms.size() == 1 && source.terms[0].norm >= 0 && source.groups.empty() && source.norms.empty() &&
         source.operations.size() == 1 && !(pass.builder.training() && pass.builder.norm(source.terms[0].norm).frozen);
}

void add_max_pool(ForwardPass& pass, int id, const Pool& pool) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const Value& source = builder.value(value.sources[0]);
  const bool on_the_fly = evaluates_source(pass, id);
  const int norm = on_the_fly ? source.terms[0].norm : -1;
  const BufferRef x = pass.read(on_the_fly ? source.terms[0].value : value.sources[0]);
  const BufferRef y = pass.make(id);
  if (on_the_fly) pass.settle({norm});
  const BufferRef scale = on_the_fly ? builder.vector(norm, NormVector::scale) : BufferRef{};
  const BufferRef shift = on_the_fly ? builder.vector(norm, NormVector::shift) : BufferRef{};
  const bool differentiates = builder.training() && source.wants_gradient;
  const Index elements = builder.samples() * elements_of(value.layout);
  const BufferRef argmax =
      differentiates ? builder.place(builder.add_buffer(BufferKind::activation, elements)) : BufferRef{};
  pass.tensor(id).argmax = argmax;
  std::vector<NodeId> nodes = on_the_fly ? source.nodes : std::vector<NodeId>{};
  nodes.insert(nodes.end(), value.nodes.begin(), value.nodes.end());
  const MaxPool max{.shape = pool_shape(builder, id, pool),
                    .activation = on_the_fly ? ActivationRule{source.activation, source.slope} : ActivationRule{}};
  builder.add_step(on_the_fly ? "apply + max pool" : "max pool", std::move(nodes), {x}, {y, argmax},
                   [=](const LaunchContext& launch) {
                     MaxPool now = max;
                     now.x = launch.at(x);
                     now.scale = launch.floats(scale);
                     now.shift = launch.floats(shift);
                     now.y = launch.at(y);
                     now.argmax = static_cast<std::uint8_t*>(launch.at(argmax));
                     check(max_pool(now, launch.stream), "max pooling");
                   });
}

void add_average_pool(ForwardPass& pass, int id, const Pool& pool) {
  const BufferRef x = pass.read(pass.builder.value(id).sources[0]), y = pass.make(id);
  const PoolShape shape = pool_shape(pass.builder, id, pool);
  pass.builder.add_step("average pool", pass.builder.value(id).nodes, {x}, {y}, [=](const LaunchContext& launch) {
    check(average_pool(shape, launch.at(x), launch.at(y), launch.stream), "average pooling");
  });
}

}  // namespace

PoolShape pool_shape(const PlanBuilder& builder, int id, const Pool& pool) {
  const Value& value = builder.value(id);
  const Layout& x = builder.value(value.sources[0]).layout;
  if (pool.mode == Pool::Mode::max && pool.kernel > largest_max_window)
    fail(
        Exit::device,
        "node '{}' takes the maximum of {} x {} pixels (the CUDA backend of {} x {} at most); use average pooling or --device cpu",
        builder.node(id).name, pool.kernel, pool.kernel, largest_max_window, largest_max_window);
  return {.storage = builder.storage(),
          .n = static_cast<int>(builder.samples()),
          .h = static_cast<int>(x.h),
          .w = static_cast<int>(x.w),
          .p = static_cast<int>(value.layout.h),
          .q = static_cast<int>(value.layout.w),
          .channels = value.layout.c,
          .kernel = pool.kernel,
          .stride = pool.stride,
          .pad = pool.pad,
          .count_padding = pool.count_padding};
}

void forward(ForwardPass& pass, int id, const Pool& pool) {
  switch (pool.mode) {
    case Pool::Mode::max:
      add_max_pool(pass, id, pool);
      break;
    case Pool::Mode::average:
      add_average_pool(pass, id, pool);
      break;
  }
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void backward(BackwardPass& pass, int id, const Pool& pool) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  if (!pass.wants_gradient(value.sources[0])) return;
  if (!pass.forward.is_stored(value.sources[0])) return differentiate_pooled_norm(pass, id, pool);
  const BufferRef dy = pass.gradient(id);
  const BufferRef dx = builder.add_tensor(value.sources[0]), argmax = pass.forward.tensor(id).argmax;
  const PoolShape shape = pool_shape(builder, id, pool);
  builder.add_step(argmax ? "max pool gradient" : "average pool gradient", value.nodes, {dy, argmax}, {dx},
                   [=](const LaunchContext& launch) {
                     const auto* const places = static_cast<const std::uint8_t*>(launch.at(argmax));
                     check(places != nullptr
                               ? max_pool_backward(shape, launch.at(dy), places, launch.at(dx), launch.stream)
                               : average_pool_backward(shape, launch.at(dy), launch.at(dx), launch.stream),
                           "the gradient of pooling");
                   });
  pass.contribute(value.sources[0], dx);
}

}  // namespace convoy::cuda
