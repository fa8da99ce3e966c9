// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace convoy {

/// The entry of `words` that a user who typed `word` most likely meant: fewest edits (insert, delete, replace, swap of
/// neighbours), case and - against _ not counted; the first of equals. Empty when nothing is close enough to be a
/// typing error.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

}  // namespace convoy
