// SPDX-License-Identifier: Apache-2.0
#include "network/operations/pool.hpp"

#include <fmt/core.h>

namespace convoy {

Shape Pool::shape(const NodeInputs& inputs) const {
  const Slide side{kernel, stride, pad};
  return inputs.slide(inputs.first().c, side, side, ceil);
}

Contract Pool::contract() const {
  // More padding than half a window would make windows of padding only.
  return {.possible = kernel > 0 && stride > 0 && pad >= 0 && 2 * pad <= kernel && !(ceil && mode == Mode::average)};
}

std::string Pool::text() const {
  const bool average = mode == Mode::average;
  return fmt::format("{} pool {}x{}, stride {}, pad {}{}{}", average ? "average" : "max", kernel, kernel, stride, pad,
                     average && count_padding ? ", padding counted" : "", ceil ? ", ceil" : "");
}

OnnxOperators Pool::onnx(const NodeInputs&) const {
  const std::vector<OnnxAttribute> window = {{"kernel_shape", std::vector<Index>{kernel, kernel}},
                                             {"strides", std::vector<Index>{stride, stride}},
                                             {"pads", std::vector<Index>{pad, pad, pad, pad}}};
  OnnxOperator pool{mode == Mode::average ? "AveragePool" : "MaxPool", {"x"}, window};
  if (mode == Mode::average) pool.attributes.push_back({"count_include_pad", Index{count_padding}});
  if (ceil) pool.attributes.push_back({"ceil_mode", Index{1}});
  return {pool};
}

std::vector<OnnxOperators> Pool::onnx_forms() { return {{{"MaxPool"}}, {{"AveragePool"}}}; }

std::optional<OnnxFound<Pool>> Pool::from_onnx(const OnnxSite& site) {
  const OnnxSite::Window window = site.window({});
  if (window.kernel != window.kernel_w || window.pad != window.pad_w) site.refuse("has a window that is not a square");
  Pool operation{.mode = site.form == 0 ? Mode::max : Mode::average,
                 .kernel = window.kernel,
                 .stride = window.stride,
                 .pad = window.pad,
                 .ceil = site.whole("ceil_mode", 0) != 0};
  if (operation.mode == Mode::average) {
    if (operation.ceil) site.refuse("is an average pool with ceil_mode");
    // Without padding both are the same, and Convoy's own default is the usual one.
    operation.count_padding = site.whole("count_include_pad", window.pad == 0 ? 1 : 0) != 0;
  }
  return {{operation}};
}

}  // namespace convoy
