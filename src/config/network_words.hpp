// SPDX-License-Identifier: Apache-2.0
// A network as other programs name it: in one word (`resnet50_v2`), or in two (`--network resnet-v2 --num-layers 50`).
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "options/command_line.hpp"

namespace convoy {

/// Removes a file's depth if the command line names a network that has one.
void leave_out_depth(std::vector<Assignment>& of_file, const std::vector<Assignment>& of_line);
/// Removes a file's depth if the file names no network: without the command line it says nothing.
void leave_out_depth_alone(std::vector<Assignment>& of_file);
/// Puts our name of a network and its options in the place of another program's, and of a depth beside it. What is
/// unknown stays, for those who refuse it. A depth of the command line takes the place of the one in a file's name.
/// `last`: what counts of each option; `names`: the options that are given. Throws Error(usage).
void translate_network(std::map<std::string, Assignment>& last, std::set<std::string>& names);

}  // namespace convoy
