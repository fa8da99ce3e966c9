// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "config/parse.hpp"

namespace convoy {

template <class Config>
using Parse = Config (*)(const Words&, const ReadText&);

/// Collective. The same configuration on all ranks: rank 0 reads the configuration file, so that all ranks see one text
/// or one error. Nothing: rank 0 has said what is wrong with the words, and all ranks leave with Exit::usage.
template <class Config>
std::optional<Config> agree_on_config(Session& session, const Words& words, Parse<Config> parse);

/// The call as it can be typed again.
std::string quoted(const std::string& command, const Words& words);

}  // namespace convoy
