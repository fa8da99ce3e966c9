// SPDX-License-Identifier: Apache-2.0
// From which checkpoint a job goes on, and which of its facts must fit the job.
#pragma once
#include <optional>
#include <string>

#include "checkpoint/resume.hpp"
#include "config/config.hpp"
#include "train/job.hpp"

namespace convoy {

struct TrainingJob;

/// Collective. The checkpoint to continue from; settles which run this attempt belongs to.
std::optional<FoundCheckpoint> find_resume(TrainingJob& job);

/// The kernels that the checkpoint's run chose, if this one does the same work: only then do bits repeat.
std::string choices_for(const TrainConfig& config, const JobShape& job, const CheckpointMeta& meta);

}  // namespace convoy
