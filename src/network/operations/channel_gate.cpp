// SPDX-License-Identifier: Apache-2.0
#include "network/operations/channel_gate.hpp"

#include "core/errors.hpp"
#include "network/operations/input_shape.hpp"

namespace convoy {

Shape ChannelGate::shape(const NodeInputs& inputs) const {
  const Shape &x = inputs.first(), &s = inputs.shapes.at(1);
  if (s != Shape{x.c, 1, 1})
    fail(Exit::usage, "node '{}' scales {} by {} (c h w); give the second input one value per channel", inputs.node,
         input_shape_text(inputs, x), input_shape_text(inputs, s));
  return x;
}

Contract ChannelGate::contract() const { return {.inputs = 2}; }

std::string ChannelGate::text() const {
  switch (gate) {
    case GateKind::sigmoid:
      return "channel gate, sigmoid";
    case GateKind::hard_sigmoid:
      return "channel gate, hard sigmoid";
  }
  return {};
}

OnnxOperators ChannelGate::onnx(const NodeInputs&) const {
  const OnnxOperator scale{"Mul", {"x", "gate"}};
  switch (gate) {
    case GateKind::sigmoid:
      return {{"Sigmoid", {"x1"}, {}, "gate"}, scale};
    case GateKind::hard_sigmoid:
      return {{"HardSigmoid", {"x1"}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}}, "gate"}, scale};
  }
  return {};
}

std::vector<OnnxOperators> ChannelGate::onnx_forms() {
  const std::string none;
  const NodeInputs inputs{.node = none, .shapes = {}, .image = {}};
  return {ChannelGate{GateKind::sigmoid}.onnx(inputs), ChannelGate{GateKind::hard_sigmoid}.onnx(inputs)};
}

std::optional<OnnxFound<ChannelGate>> ChannelGate::from_onnx(const OnnxSite& site) {
  return {{{.gate = site.form == 0 ? GateKind::sigmoid : GateKind::hard_sigmoid}}};
}

}  // namespace convoy
