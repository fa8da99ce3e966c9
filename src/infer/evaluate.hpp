// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace convoy {

/// Collective. The whole of `convoy evaluate`: exact over ranks, integers identical for any number of them.
Exit evaluate(Communicator& communicator, const EvaluateConfig& config);

}  // namespace convoy
