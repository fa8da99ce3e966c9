// SPDX-License-Identifier: Apache-2.0
// What a training job needs before its first step, as far as one rank can tell: shared by the run and its dry run.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "data/evaluation.hpp"
#include "engine/data.hpp"
#include "engine/engine.hpp"
#include "engine/model_data.hpp"
#include "train/job.hpp"

namespace convoy {

struct Splits {
  DatasetInfo train, val;
  bool has_val = false;     ///< false with --skip-eval too
  DataConfig val_data;      ///< as the network that learns from `train` sees `val`
  DataVerdict val_verdict;  ///< what is worth saying of it
};

/// Whole epochs on one data set, image size and batch: all of the run, or what its phases make of it.
struct TrainingPhase {
  Index begin_epoch = 0;
  TrainConfig config;  ///< the run's, changed as the phase says
  Splits splits;
  JobShape job;  ///< its timeline and total steps are the run's
  AugmentSpec augment;
  EvaluationSpec evaluation;           ///< unused without a val split
  std::vector<ShapeGroup> val_groups;  ///< rectangular validation: of the whole split; empty: square
  int topk = 5;
  std::vector<float> class_weights;           ///< of the training loss; empty: all are 1
  std::shared_ptr<const ClassLists> classes;  ///< for balanced epochs; null: none
};

/// What the files of a phase's data set say, before a network looks at it.
struct SplitHeaders {
  DatasetInfo train, val;
  bool has_val = false;
  std::vector<std::int32_t> labels;    ///< of all samples that train, if --class-weights or --balance ask for them
  std::vector<ShapeGroup> val_groups;  ///< as TrainingPhase's
};
/// Throws Error(data), also where the two splits don't belong together.
SplitHeaders read_headers(const TrainConfig& config);
/// Of all phases.
std::vector<SplitHeaders> read_all_headers(const TrainConfig& config);
/// Throws Error(data) if the network can't be validated on the val split.
Splits make_splits(const TrainConfig& config, SplitHeaders headers);

/// The phases of a run, opened: one where no phase changes data, size or batch. Throws Error(data), and Error(usage)
/// where a phase changes them in the middle of an epoch.
std::vector<TrainingPhase> open_phases(const TrainConfig& config);
/// The same of headers that have been read.
std::vector<TrainingPhase> open_phases(const TrainConfig& config, std::vector<SplitHeaders> headers);
/// For the first phase's images. Throws Error(usage), also if it can't take --val-image-size or --freeze.
Graph build_network(const std::vector<TrainingPhase>& phases);
/// What the network learns from in a phase.
TrainedData data_of(const TrainingPhase& phase);
/// Fills job, augmentation and evaluation of all phases. Reads no files.
void plan_phases(std::vector<TrainingPhase>& phases, int ranks, int rank, int replicas);
/// Where replicas have sets of their own, --check-arithmetic keeps one in which a rank repeats another's step.
bool repeats_in_own_set(const TrainConfig& config, const JobShape& job);
/// Sets of parameters in a rank's memory: those of its replicas, the average that --ema-decay or lookahead keeps, and
/// that of repeats_in_own_set().
int kept_sets(const TrainConfig& config, const JobShape& job);
/// Plan, optimiser, input and the sizes to compile, of all phases; choices are left empty.
EngineSpec engine_spec(const std::vector<TrainingPhase>& phases);
/// By what a phase's batch changes the rate (--lr-scaling), against the first phase's; 1 where phases give rates.
std::vector<double> rate_factors(const std::vector<TrainingPhase>& phases);
/// What a run's data can't do that its configuration asks for: one line each, each once. After plan_phases.
std::set<std::string> data_warnings(const std::vector<TrainingPhase>& phases);
/// Warnings about ranks and batches that are probably a mistake, one line each. Call after plan_phases.
std::vector<std::string> job_warnings(const std::vector<TrainingPhase>& phases);
/// `5000 validation images`, and their size if training has another.
std::string tell_validation(const TrainingPhase& phase);
/// Throws Error(usage) if the run of the checkpoint froze other parameters, whose optimiser states differ.
void require_same_frozen(const TrainConfig& config, const CheckpointMeta& meta);
/// One line per phase.
std::string describe(const std::vector<TrainingPhase>& phases);

}  // namespace convoy
