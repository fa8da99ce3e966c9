// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// `64x3x7x7`, for messages.
inline std::string shape_text(const std::vector<Index>& extent) {
  return extent.empty() ? "a scalar" : fmt::format("{}", fmt::join(extent, "x"));
}

}  // namespace convoy
