// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "preprocess/images/images_spec.hpp"

namespace convoy::preparation {

/// Nothing for words that name no kind of image source.
std::optional<ImagesKind> images_kind(const std::string& word);
std::vector<std::string> images_kind_names();
/// The options' text for --help.
std::string images_help(ImagesKind kind);
/// Nothing: --help was asked for. Throws Error(usage).
std::optional<ImagesSpec> parse_images_options(ImagesKind kind, const std::vector<std::string>& arguments);

}  // namespace convoy::preparation
