// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

/// What becomes of a file that is there already (--overwrite).
enum class Existing : std::uint8_t { stays, is_replaced };

/// Throws Error(usage) if --output must not be written: it exists and stays, it is not a regular file, or it is one of
/// the files to `read`.
void require_free(const std::string& output, Existing existing, const std::vector<std::string>& read);

}  // namespace convoy
