// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "train/job.hpp"

namespace convoy {

struct TrainingJob;

/// Periods and groups of averages that do nothing in this job, or not what they are for: one line each. `hosts`: of
/// each rank.
std::vector<std::string> policy_warnings(const JobShape& job, const std::vector<std::string>& hosts);

/// All that is probably a mistake in this job's ranks, batches and policy, one line each.
std::vector<std::string> likely_mistakes(const TrainingJob& job);

}  // namespace convoy
