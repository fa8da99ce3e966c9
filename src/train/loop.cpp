// SPDX-License-Identifier: Apache-2.0
#include "train/loop.hpp"

#include "train/training_job.hpp"

namespace convoy {
namespace {

/// Collective. One replica's batch goes through the network, stage by stage; sync sums each range that is ready, and
/// launches the optimiser where this replica's update is due.
void train_replica(TrainingJob& job, const Observers& observers, const ReplicaBatch& batch) {
  Engine& engine = *job.engine;
  Sync& sync = *job.sync;
  const bool watched = observers.watch_stages(job.state);
  sync.begin_replica(batch.replica, batch.key.samples, batch.step_samples);
  const auto run = [&] {
    for (std::size_t stage = 0; stage < engine.stages().size(); ++stage) {
      engine.launch(batch.key, stage, sync.set(batch.replica));
      if (watched) observers.stage_done(job.state, batch, stage);
      sync.ready(stage, engine.stages()[stage], batch.replica);
    }
    sync.replica_done(batch.replica, batch.key.samples, engine.updater());
  };
  if (!watched && sync.capturable(batch.replica)) return engine.backend().replay(batch.key.hash(), run);
  run();
}

}  // namespace

void run_loop(TrainingJob& job, const Observers& observers) {
  LoopState& state = job.state;
  const Position& position = state.position;
  while (!state.ends()) {
    state.working = position;
    observers.step_begins(state);
    job.optimiser.begin_step(position.step);
    for (int turn = 0; turn < job.shape.turns; ++turn) {
      if (turn > 0) job.wait_for_device("an earlier turn");
      ReplicaBatch batch = job.data->next(position, job.shape.replica(turn));
      batch.input.scale = job.sync->scale(batch.key.samples, batch.step_samples);
      observers.batch_ready(state, batch);
      job.engine->feed(batch.key, batch.input);
      const StepTimer::Scope timed(job.timer, StepPart::launches);
      train_replica(job, observers, batch);
    }
    {
      const StepTimer::Scope timed(job.timer, StepPart::averages);
      job.sync->step_done(position.step);
      job.average.step_done(position.step);
    }
    job.wait_for_device("an earlier step");
    state.advance(job.data->step_samples(position), job.shape.timeline);
    observers.step_done(state);
  }
}

}  // namespace convoy
