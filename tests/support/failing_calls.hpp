// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

/// Replaces the rules by which calls fail (failing_calls.cpp has their form); empty: none fails.
void set_failing_calls(const std::string& text);

}  // namespace convoy
