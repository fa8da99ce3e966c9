// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/preflight_report.hpp"
#include "config/config.hpp"

namespace convoy {

/// Collective. Keeps arithmetic, memory, disk and links busy for about --stress seconds, and compares what they give:
/// steps of a network with those of other ranks on the same device, memory and files with what was written, messages of
/// all pairs of ranks with what was sent.
void stress(Communicator& communicator, const PreflightConfig& config, Preflight& to);

}  // namespace convoy
