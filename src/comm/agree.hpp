// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "comm/communicator.hpp"

namespace convoy {

/// Collective. What rank 0 finds, on all ranks. Where it throws there, all ranks throw the same error.
std::string ask_first_rank(Communicator& communicator, const char* what, const std::function<std::string()>& body);

struct FirstText {
  int rank = -1;  ///< -1: no rank has a text
  std::string text;
};
/// Collective. The text of the lowest rank that has one, on all ranks.
FirstText first_text(Communicator& communicator, std::string own, const char* what);

/// Collective. The error of the lowest rank on which body throws is thrown on all ranks, with its number and host.
void together_or_throw(Communicator& communicator, const char* what, const std::function<void()>& body);

}  // namespace convoy
