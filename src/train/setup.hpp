// SPDX-License-Identifier: Apache-2.0
// What a training job needs before its first step, as far as one rank can tell: shared by the run and its dry run.
#pragma once
#include "train/data.hpp"
#include "train/engine.hpp"
#include "train/job.hpp"

namespace convoy {

struct Splits {
  DatasetInfo train, val;
  bool has_val = false;  ///< false with --skip-eval too
};

/// Throws Error(data), also where the two splits don't belong together.
Splits open_splits(const TrainConfig& config);

/// Plan, optimiser, input and the sizes to compile; choices are left empty.
EngineSpec engine_spec(const TrainConfig& config, const Job& job, const Splits& splits);

}  // namespace convoy
