// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace convoy {

/// Throws Error(usage) where --output must not be written: something has the name and `overwrite` is off, it is no
/// file, or it is one of those that are read.
void require_free(const std::string& output, bool overwrite, const std::vector<std::string>& read);

}  // namespace convoy
