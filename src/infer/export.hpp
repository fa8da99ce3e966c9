// SPDX-License-Identifier: Apache-2.0
// Trained weights for other programs: docs/weights.md says what the files hold.
#pragma once
#include <string>

#include "config/config.hpp"

namespace convoy {

/// Writes the file atomically. Returns a line about it. Throws Error(usage) if the output is in the way, and
/// Error(data).
std::string export_model(const ExportConfig& config);

}  // namespace convoy
