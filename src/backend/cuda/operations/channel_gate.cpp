// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/channel_gate.hpp"

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

GatePass gate_pass_of(const PlanBuilder& builder, int id, const ChannelGate& attributes) {
  const Value& value = builder.value(id);
  return {.storage = builder.storage(),
          .n = builder.samples(),
          .pixels = pixels_of(value.layout),
          .channels = value.layout.c,
          .gate = attributes.gate};
}

}  // namespace

void forward(ForwardPass& pass, int id, const ChannelGate& attributes) {
  const Value& value = pass.builder.value(id);
  const BufferRef x = pass.read(value.sources[0]), s = pass.read(value.sources[1]), y = pass.make(id);
  const GatePass gate = gate_pass_of(pass.builder, id, attributes);
  pass.builder.add_step("channel gate", value.nodes, {x, s}, {y}, [=](const LaunchContext& launch) {
    check(gate_channels(gate, launch.at(x), launch.at(s), launch.at(y), launch.stream), "a channel gate");
  });
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

void backward(BackwardPass& pass, int id, const ChannelGate& attributes) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const BufferRef dy = pass.gradient(id), x = pass.forward.tensor(value.sources[0]).value,
                  s = pass.forward.tensor(value.sources[1]).value;
  const auto wanted = [&](int source) {
    return pass.wants_gradient(source) ? builder.add_tensor(source) : BufferRef{};
  };
  const BufferRef dx = wanted(value.sources[0]), ds = wanted(value.sources[1]);
  const GatePass gate = gate_pass_of(builder, id, attributes);
  builder.add_step("channel gate gradient", value.nodes, {x, s, dy}, {dx, ds}, [=](const LaunchContext& launch) {
    const GateGradients tensors{
        .x = launch.at(x), .s = launch.at(s), .dy = launch.at(dy), .dx = launch.at(dx), .ds = launch.at(ds)};
    check(gate_channels_backward(gate, tensors, launch.stream), "the gradient of a channel gate");
  });
  if (dx) pass.contribute(value.sources[0], dx);
  if (ds) pass.contribute(value.sources[1], ds);
}

}  // namespace convoy::cuda
