// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "preprocess/prepare_spec.hpp"

namespace convoy::preparation {

/// The options' text for --help.
std::string images_help(const Source& kind);
/// Nothing: --help was asked for. Throws Error(usage).
std::optional<PrepareSpec> parse_images_options(const Source& kind, const std::vector<std::string>& arguments);

}  // namespace convoy::preparation
