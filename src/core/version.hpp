// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

/// `0.1.0`.
std::string version();
/// `0.1.0 (git 65de4dd-dirty)`; `0.1.0 (no git)` when built from an archive. Stored with runs and checkpoints.
std::string build_id();
/// Compiler and build type.
std::string compiler();

}  // namespace convoy
