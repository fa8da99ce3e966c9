// SPDX-License-Identifier: Apache-2.0
// What the commands of convoy-preprocess share in reading their options.
#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/wall_clock.hpp"

namespace convoy::preparation {

constexpr unsigned help_columns = 110;

void add_time_options(boost::program_options::options_description& options, TimeLimit& limit);
void add_stall_options(boost::program_options::options_description& options, StallLimits& deadline);
std::string text_of(const boost::program_options::options_description& options);

/// True: --help was asked for. `positional`: the option that a word without dashes sets; null: none. Throws
/// Error(usage).
bool parse_options(const boost::program_options::options_description& options,
                   const std::vector<std::string>& arguments, const char* positional);

/// Throws Error(usage) naming the option.
void require_between(const char* option, Index value, Index low, Index high);

}  // namespace convoy::preparation
