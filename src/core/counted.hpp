// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/core.h>

#include <concepts>
#include <string>
#include <string_view>

namespace convoy {

/// `1 step`, `2 steps`: of nouns that take an s.
template <std::integral N>
std::string counted(N number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace convoy
