// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "comm/communicator.hpp"
#include "core/wall_clock.hpp"
#include "data/dataset.hpp"
#include "preprocess/prepare_spec.hpp"

namespace convoy::preparation {

struct VerifySpec {
  std::string folder;
  StallLimits deadline = patience_of_preparation;
  TimeLimit time_limit;
};

struct InspectSpec {
  std::string folder;
};

struct HelpSpec {
  std::string text;
};

using Command = std::variant<HelpSpec, PrepareSpec, VerifySpec, InspectSpec>;

/// Throws Error(usage): unknown options with the nearest name, missing or bad values.
Command parse_command_line(const std::vector<std::string>& arguments);

}  // namespace convoy::preparation
