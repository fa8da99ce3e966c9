// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "network/plan.hpp"
#include "train/job.hpp"

namespace convoy {

struct TrainingJob;

/// Periods and groups of averages that do nothing in this job, or not what they are for: one line each. `hosts`: of
/// each rank.
std::vector<std::string> policy_warnings(const JobShape& job, const std::vector<std::string>& hosts);

/// If compressed gradients are more bytes than fp32 would be, since each replica sends a message to all ranks; else
/// empty.
std::string wire_warning(const SyncSpec& sync, const Plan& plan, const SetLayout& layout);
/// Options that together do nothing or the reverse of what they are for, one line each. They don't end the job, since a
/// run that goes on may have begun with them. `peak_rate`: after scaling.
std::vector<std::string> option_warnings(const TrainConfig& config, double peak_rate, const Plan& plan);
/// All that is probably a mistake in this job's ranks, batches, policy and options, one line each.
std::vector<std::string> likely_mistakes(const TrainingJob& job);

}  // namespace convoy
