// SPDX-License-Identifier: Apache-2.0
// Concatenation along the channels, which lie innermost: rows side by side.
#include "backend/cuda/operations/concatenation.hpp"

#include <utility>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

ChannelParts parts_of(const PlanBuilder& builder, int id) {
  const Value& value = builder.value(id);
  if (value.sources.size() > ChannelParts::most)
    fail(Exit::device,
         "node '{}' concatenates {} tensors (the CUDA backend takes {} at most); concatenate in two steps",
         builder.node(id).name, value.sources.size(), ChannelParts::most);
  ChannelParts parts{.storage = builder.storage(), .rows = builder.rows(id), .channels = value.layout.c};
  Index begin = 0;
  for (const int source : value.sources) {
    const Index channels = builder.value(source).layout.c;
    parts.parts[parts.count++] = {nullptr, channels, begin};
    begin += channels;
  }
  return parts;
}

/// The parts where their tensors lie in a launch; a reference that is none leaves its part out.
ChannelParts placed(ChannelParts parts, const std::vector<BufferRef>& tensors, BufferRef whole,
                    const LaunchContext& launch) {
  for (std::size_t i = 0; i < tensors.size(); ++i) parts.parts[i].tensor = launch.at(tensors[i]);
  parts.whole = launch.at(whole);
  return parts;
}

}  // namespace

void forward(ForwardPass& pass, int id, const Concatenation&) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  std::vector<BufferRef> tensors;
  for (const int source : value.sources) tensors.push_back(pass.read(source));
  const BufferRef y = pass.make(id);
  builder.add_step("concatenation", value.nodes, tensors, {y},
                   [=, parts = parts_of(builder, id)](const LaunchContext& launch) {
                     check(join_channels(placed(parts, tensors, y, launch), launch.stream), "a concatenation");
                   });
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void backward(BackwardPass& pass, int id, const Concatenation&) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const BufferRef dy = pass.gradient(id);
  std::vector<BufferRef> tensors;
  for (const int source : value.sources)
    tensors.push_back(pass.wants_gradient(source) ? builder.add_tensor(source) : BufferRef{});
  builder.add_step("concatenation gradient", value.nodes, {dy}, tensors,
                   [=, parts = parts_of(builder, id)](const LaunchContext& launch) {
                     check(split_channels(placed(parts, tensors, dy, launch), launch.stream),
                           "the gradient of a concatenation");
                   });
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i]) pass.contribute(value.sources[i], tensors[i]);
}

}  // namespace convoy::cuda
