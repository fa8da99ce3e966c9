// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "comm/communicator.hpp"
#include "core/wall_clock.hpp"
#include "data/dataset.hpp"
#include "options/option.hpp"
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

/// What may follow the program's name: sources, verify, inspect.
std::vector<std::string> command_words();
/// Shows the options of one of these, bound to defaults that live as long as the call.
void see_options(const std::string& word, const std::function<void(const std::vector<OptionGroup>&)>& see);
/// As --help prints them.
std::string usage_text();
std::string exit_code_text();

}  // namespace convoy::preparation
