// SPDX-License-Identifier: Apache-2.0
// Options of both programs about the end of a job.
#pragma once
#include "core/wall_clock.hpp"
#include "options/option.hpp"

namespace convoy {

OptionGroup time_limit_options(TimeLimit& limit);
/// How long ranks wait for each other; without the watchdog.
OptionGroup waiting_options(StallLimits& limits);

}  // namespace convoy
