// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// Its number where the data set gives it no name.
inline std::string class_name(const std::vector<std::string>& names, Index number) {
  const auto i = static_cast<std::size_t>(number);
  return i < names.size() ? names[i] : std::to_string(number);
}

}  // namespace convoy
