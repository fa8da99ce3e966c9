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

}  // namespace convoy
