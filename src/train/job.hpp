// SPDX-License-Identifier: Apache-2.0
// The shape of a job: how many replicas, on how many ranks, with which batch, in which order.
#pragma once
#include <memory>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/replicas.hpp"
#include "data/order.hpp"
#include "sync/sync.hpp"
#include "train/timeline.hpp"

namespace convoy {

struct JobShape {
  int ranks = 1, rank = 0;
  int replicas = 1;  ///< W
  ReplicaRun run;    ///< this rank's replicas
  int turns = 1;     ///< replicas of the rank with most: every rank walks the stages this often a step
  OrderSpec order;
  SyncSpec sync;
  Index steps_per_epoch = 0;  ///< of the first phase, as order and batch
  Index global_batch = 0;
  Timeline timeline;     ///< of all phases
  double peak_rate = 0;  ///< after scaling
  Index total_steps = 0;

  /// The replica of a turn; -1 where this rank has none.
  int replica(int turn) const { return turn < run.count ? run.first + turn : -1; }
};

/// Throws Error(usage) where configuration, data and ranks don't fit each other. `replicas`: 0 = ranks *
/// grad-accum-steps. `classes`: for balanced epochs; null: none.
JobShape plan_job(const TrainConfig& config, Index train_samples, int ranks, int rank, int replicas,
                  std::shared_ptr<const ClassLists> classes = {});

/// The replicas of each host, if all hosts have equally many and their ranks are numbered one host after the other;
/// else 0.
int replicas_of_host(const std::vector<std::string>& host_of_rank, int replicas);

/// The highest rate: the peak, or the highest of [phase.N].
double highest_rate(const TrainConfig& config, const JobShape& job);

/// One line: ranks, replicas, batch, global batch, rates and the scaling rule, steps.
std::string describe(const JobShape& job, const TrainConfig& config);

/// The samples that --train-fraction leaves.
Index used_samples(const DataConfig& config, Index samples);

ScheduleSpec schedule_of(const TrainConfig& config, double peak_rate);
/// The way to average that a configuration asks for, without replicas, ranks and compression, which are a job's.
SyncSpec policy_of(const SyncConfig& config);

}  // namespace convoy
