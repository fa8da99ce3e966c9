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

}  // namespace convoy
