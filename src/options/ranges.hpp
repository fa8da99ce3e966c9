// SPDX-License-Identifier: Apache-2.0
// Ranges of lengths and times, and numbers that are computed with in fp32.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "options/option.hpp"

namespace convoy {

/// Lengths of runs: with more epochs their steps could not be counted.
constexpr double most_epochs = 1e9;
constexpr Bounds epochs_above(double low) { return {.low = low, .high = most_epochs, .low_excluded = true}; }
/// Of a time to wait: 30 years, which clocks count.
constexpr Bounds seconds_from_0() { return {.low = 0, .high = 1e9}; }

/// Also refuses what fp32 can't tell from 0 or from a bound that is excluded. Throws BadValue.
inline double read_fp32(const std::string& text, const Bounds& bounds) {
  const double value = read_number(text, bounds);
  const auto rounded = static_cast<float>(value);
  if (value != 0 && rounded == 0) throw BadValue("is 0 in fp32, the format of the arithmetic");
  if (std::isinf(rounded)) throw BadValue("is infinite in fp32, the format of the arithmetic");
  if (!Bounds{.low = bounds.low_excluded ? bounds.low : -unlimited,
              .high = bounds.high_excluded ? bounds.high : unlimited,
              .low_excluded = true,
              .high_excluded = true}
           .contains(static_cast<double>(rounded)))
    throw BadValue(fmt::format("is {} in fp32, the format of the arithmetic", rounded));
  return value;
}

/// An option that is computed with in fp32.
inline Option in_fp32(Option option, const Bounds& bounds) {
  option.set = [set = std::move(option.set), bounds](const std::string& text) {
    read_fp32(text, bounds);
    set(text);
  };
  return option;
}
template <class T>
Option fp32_option(std::string name, T& to, const Bounds& bounds, std::string help) {
  return in_fp32(number_option(std::move(name), "F", to, bounds, std::move(help)), bounds);
}

}  // namespace convoy
