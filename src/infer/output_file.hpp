// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace convoy {

/// Throws Error(usage) if --output must not be written: it exists and `overwrite` is off, it is not a regular file, or
/// it is one of the files to `read`.
void require_free(const std::string& output, bool overwrite, const std::vector<std::string>& read);

}  // namespace convoy
