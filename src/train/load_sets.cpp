// SPDX-License-Identifier: Apache-2.0
#include "train/load_sets.hpp"

#include <algorithm>

#include "backend/set_layout.hpp"
#include "comm/agreed_error.hpp"
#include "core/log.hpp"
#include "train/training_job.hpp"

namespace convoy {

void load_sets(TrainingJob& job, const std::vector<float>& block) {
  run_agreed(job.communicator, "loading the weights", [&] {
    for (const ParameterSet& set : job.sync->sets()) job.engine->upload(set, block, *job.collectives);
  });
}

void load_average(TrainingJob& job, const std::vector<float>& block) {
  if (!job.average.is_on()) return;
  run_agreed(job.communicator, "loading the moving average", [&] { job.average.load(block, *job.collectives); });
}

void resume_average(TrainingJob& job, const Checkpoint& loaded) {
  const bool has = loaded.meta.ema_decay > 0;
  const double steps = loaded.meta.lookahead_steps();
  if (has && job.average.is_on() && (steps > 0) != (job.config.lookahead.steps > 0)) {
    log::info("'{}' holds the average of {}, and this job is to keep another: it starts from the weights", loaded.path,
              steps > 0 ? "--lookahead-steps" : "--ema-decay");
    return load_average(job, loaded.set.block);
  }
  load_average(job, has ? loaded.ema.block : loaded.set.block);
  if (job.average.is_on() && !has)
    log::info("'{}' holds no moving average of the weights: it starts from them", loaded.path);
  if (!job.average.is_on() && has)
    log::info("{} of '{}' {} dropped (neither --ema-decay nor --lookahead-steps): training continues without {}",
              steps > 0 ? "the slow weights" : "the moving average", loaded.path, steps > 0 ? "are" : "is",
              steps > 0 ? "them" : "it");
}

void load_outer(TrainingJob& job, const std::vector<float>& block, const HostSet& outer) {
  const ParameterSet to = job.sync->outer();
  if (to.block == nullptr) return;
  std::vector<float> state = outer.block;
  if (state.empty()) {
    const SetLayout& layout = job.engine->layout();
    state.assign(static_cast<std::size_t>(to.count), 0.0F);
    std::copy_n(block.begin() + layout.trained.begin, layout.trained.count,
                state.begin() + outer_layout(layout).anchor.begin);
  }
  run_agreed(job.communicator, "loading the outer optimizer", [&] {
    job.collectives->await(job.engine->backend().upload(to.block, state.data(), to.count),
                           "upload of the outer optimizer");
  });
}

void load_replicas(TrainingJob& job, const std::vector<Shard>& shards) {
  std::vector<Index> since(static_cast<std::size_t>(job.shape.run.count), 0);
  run_agreed(job.communicator, "loading the replicas", [&] {
    for (const Shard& shard : shards) {
      if (shard.set.block.empty()) continue;  // a residual alone
      job.engine->upload(job.sync->set(shard.replica), shard.set.block, *job.collectives);
      since.at(static_cast<std::size_t>(shard.replica - job.shape.run.first)) = shard.samples_since_average;
    }
  });
  job.sync->restore(since);
}

}  // namespace convoy
