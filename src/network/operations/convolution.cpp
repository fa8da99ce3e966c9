// SPDX-License-Identifier: Apache-2.0
#include "network/operations/convolution.hpp"

#include <fmt/core.h>

namespace convoy {

Shape Convolution::shape(const NodeInputs& inputs) const {
  inputs.require_channels(in);
  return inputs.slide(out, {kernel, stride, pad}, {s(), stride, pad_s()});
}

Contract Convolution::contract() const {
  const bool possible = in > 0 && out > 0 && kernel > 0 && stride > 0 && pad >= 0 && kernel_w >= 0 && pad_w >= 0 &&
                        groups > 0 && in % groups == 0 && out % groups == 0;
  if (!possible) return {.possible = false};
  Contract contract{.parameters = {{"weight", Kind::weight, {out, in / groups, kernel, s()}}}};
  if (bias) contract.parameters.push_back({"bias", Kind::bias, {out}});
  return contract;
}

std::string Convolution::text() const {
  const std::string padding = kernel_w > 0 ? fmt::format("{}x{}", pad, pad_w) : fmt::format("{}", pad);
  return fmt::format("convolution {} -> {}, {}x{}, stride {}, pad {}, groups {}{}", in, out, kernel, s(), stride,
                     padding, groups, bias ? ", bias" : "");
}

OnnxOperators Convolution::onnx(const NodeInputs&) const {
  OnnxOperator conv{"Conv",
                    {"x", "weight"},
                    {{"kernel_shape", std::vector<Index>{kernel, s()}},
                     {"strides", std::vector<Index>{stride, stride}},
                     {"pads", std::vector<Index>{pad, pad_s(), pad, pad_s()}},
                     {"group", Index{groups}}}};
  if (bias) conv.reads.emplace_back("bias");
  return {conv};
}

double Convolution::macs(const Shape& output) const {
  const Index taps = in / groups * kernel * s();
  return static_cast<double>(output.count()) * static_cast<double>(taps);
}

std::vector<OnnxOperators> Convolution::onnx_forms() { return {{{"Conv", {"x", "weight", "bias"}}}}; }

std::optional<OnnxFound<Convolution>> Convolution::from_onnx(const OnnxSite& site) {
  const OnnxSite::Window window = site.window({site.side("weight", 2), site.side("weight", 3)});
  const Index groups = site.whole("group", 1);
  if (groups < 1 || groups > most_side) site.refuse(fmt::format("has {} groups", groups));
  Convolution operation{.in = site.side("weight", 1) * groups,
                        .out = site.side("weight", 0),
                        .kernel = window.kernel,
                        .stride = window.stride,
                        .pad = window.pad,
                        .groups = static_cast<int>(groups),
                        .bias = site.constant("bias") != nullptr};
  if (window.kernel != window.kernel_w || window.pad != window.pad_w) {
    operation.kernel_w = window.kernel_w;
    operation.pad_w = window.pad_w;
  }
  return {{operation}};
}

}  // namespace convoy
