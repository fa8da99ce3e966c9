// SPDX-License-Identifier: Apache-2.0
#include "network/operations/convolution.hpp"

#include <fmt/core.h>

namespace convoy {

Shape Convolution::shape(const NodeInputs& inputs) const {
  inputs.require_channels(in);
  return inputs.slide(out, kernel, stride, pad);
}

Contract Convolution::contract() const {
  const bool possible =
      in > 0 && out > 0 && kernel > 0 && stride > 0 && pad >= 0 && groups > 0 && in % groups == 0 && out % groups == 0;
  if (!possible) return {.possible = false};
  Contract contract{.parameters = {{"weight", Kind::weight, {out, in / groups, kernel, kernel}}}};
  if (bias) contract.parameters.push_back({"bias", Kind::bias, {out}});
  return contract;
}

std::string Convolution::text() const {
  return fmt::format("convolution {} -> {}, {}x{}, stride {}, pad {}, groups {}{}", in, out, kernel, kernel, stride,
                     pad, groups, bias ? ", bias" : "");
}

double Convolution::macs(const Shape& output) const {
  const Index taps = in / groups * kernel * kernel;
  return static_cast<double>(output.count()) * static_cast<double>(taps);
}

}  // namespace convoy
