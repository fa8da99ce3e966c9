// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace convoy {

/// Collective. Runs body on every rank and returns every rank's text, in order of rank. Where it threw on any rank, all
/// ranks throw the error of the lowest such rank, with its number and host.
std::vector<std::string> agree(Communicator& communicator, const char* what, const std::function<std::string()>& body);

}  // namespace convoy
