// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace convoy::preparation {

/// The program's page for man: options of all its words, each group once.
std::string manual();
/// `words`: what follows `completion`. Throws Error(usage) unless it is one shell that is known.
std::string completion(const std::vector<std::string>& words);

}  // namespace convoy::preparation
