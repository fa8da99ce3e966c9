// SPDX-License-Identifier: Apache-2.0
// One validated struct a command. Everything a program does is decided by these values; options.cpp fills them from the
// command line and an INI file, print.cpp writes them back as an INI that repeats the run.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "config/class_weights.hpp"
#include "core/wall_clock.hpp"
#include "core/weight_choice.hpp"
#include "data/augment.hpp"
#include "data/dataset.hpp"
#include "data/order.hpp"
#include "network/models.hpp"
#include "optim/rule_info.hpp"
#include "optim/schedule.hpp"
#include "sync/sync.hpp"

namespace convoy {

/// ram: samples are read once. stream: when they are used. stage: streamed from a copy on this host. automatic: ram
/// where it is enough.
enum class DataCache : std::uint8_t { automatic, ram, stream, stage };

struct DataConfig {
  std::string folder;                    ///< --data
  std::string train_folder, val_folder;  ///< --train-data, --val-data; default: --data
  bool synthetic = false;                ///< --synthetic: generated in memory, no files
  SyntheticSpec synthetic_spec;          ///< --synthetic-samples, --synthetic-size, --synthetic-classes
  Index image_size = 0;                  ///< --image-size: network input; 0 = the stored size
  Index val_image_size = 0;              ///< --val-image-size: input of validation; 0 = image_size
  Index val_resize = 0;                  ///< --val-resize: short side before validation's crop; 0 = augment.resize
  Shuffle shuffle = Shuffle::partition;
  Index shuffle_buffer = 4096;  ///< --shuffle-buffer, samples
  EpochMode epoch_mode = EpochMode::exact;
  Balance balance = Balance::none;                       ///< --balance
  double train_fraction = 1;                             ///< the first part of the global sample space
  Index limit_train_batches = 0, limit_val_batches = 0;  ///< smoke runs; 0 = no limit
  int repeats = 1;                                       ///< --repeated-augmentation
  std::string augmentation;                              ///< --augment: the recipe that `augment` started from
  AugmentSpec augment;  ///< as options say it; sizes and what the data decide are filled when the run starts
  InputSpec::Normalise normalise = InputSpec::Normalise::channel;
  std::vector<double> rgb_mean, rgb_std;  ///< empty: from the data
  int workers = 1, prefetch = 4;
  DataCache cache = DataCache::automatic;  ///< --data-cache
  double memory_mb = 0;                    ///< --data-memory, a rank; 0: half of what the host has to spare
  std::string stage_folder;                ///< --stage-dir
  OnCorrupt on_corrupt = OnCorrupt::fail;
  bool rectangular = false;  ///< --rectangular-validation
  bool flip_test = false;    ///< --flip-test: evaluation averages an image and its mirror
  Index translate_test = 0;  ///< --translate-test: pixels by which further views move along the diagonal
};

struct OptimiserConfig {
  Rule rule = Rule::sgd;
  RuleSettings settings = usual_settings();  ///< options of all rules
  double weight_decay = 1e-4, norm_weight_decay = 0, bias_weight_decay = 0;
  double clip_norm = 0;
  double loss_scale = 0;            ///< fp16 only; 0: dynamic
  Index loss_scale_window = 2000;   ///< good steps until a dynamic one is doubled
  double rate = 0.1;                ///< --lr
  Scaling scaling = Scaling::none;  ///< --lr-scaling: --lr is for --lr-base-batch images a step
  Index base_batch = 256;
  ScheduleSpec schedule;  ///< rate and epochs are filled when the run starts

  OptionValues rule_values() const { return values_of(rule, settings); }
};

/// Exponential moving average of the weights, which evaluation then takes.
struct EmaConfig {
  double decay = 0;  ///< --ema-decay; 0: off
  Index steps = 1;   ///< --ema-steps between two updates
};

/// --lr-mult PATTERN=F or PATTERN=F@EPOCHS.
struct RateMultiplierConfig {
  std::string pattern;  ///< of parameters' names
  double factor = 1;
  double epochs = 0;  ///< after which the learning rate is 0; 0: it never is
  bool operator==(const RateMultiplierConfig&) const = default;
};

/// --decay-mult PATTERN=F.
struct DecayMultiplierConfig {
  std::string pattern;  ///< of parameters' names
  double factor = 1;
  bool operator==(const DecayMultiplierConfig&) const = default;
};

/// Slow weights, towards which training returns every few steps.
struct LookaheadConfig {
  Index steps = 0;     ///< --lookahead-steps between two returns; 0: off
  double alpha = 0.5;  ///< --lookahead-alpha: what the slow weights take over at the end of the run
  double power = 0;    ///< --lookahead-power: 1 - alpha grows as this power of the part of the run that is done
};

/// [phase.N]: epochs `begin`..`end`, rate `lr` or `lr0:lr1`, and what else changes then (0, empty: nothing).
struct PhaseConfig {
  int number = 0;
  RatePhase rate;  ///< its epochs are the phase's
  bool has_rate = true;
  Index image_size = 0, batch = 0, global_batch = 0;
  double min_area = 0;                                                                      ///< of random resized crops
  std::string folder;                                                                       ///< data set
  enum class Switch : std::uint8_t { unchanged, off, on } rectangular = Switch::unchanged;  ///< validation
  bool changes_data() const {
    return image_size > 0 || batch > 0 || global_batch > 0 || min_area > 0 || !folder.empty() ||
           rectangular != Switch::unchanged;
  }
};

struct SyncConfig {
  SyncMode mode = SyncMode::weights;
  Index local_steps = 1, local_start = 0;
  MomentumPolicy momentum = MomentumPolicy::keep;
  OuterSpec outer;       ///< --outer-optimizer, --outer-lr, --outer-momentum
  bool overlap = false;  ///< --overlap-average
  GroupSpec group;       ///< --node-steps, --node-replicas; replicas 0: those of a host, filled when the run starts
  bool reproducible = false, sync_bn = false;
  WireChoice wire;              ///< --wire
  CompressionSpec compression;  ///< --wire-threshold, --wire-fraction, --wire-rank; its kind follows from wire
  int replicas = 0;             ///< 0: ranks * grad_accum_steps
  int grad_accum_steps = 1;
  double bucket_mb = 8;          ///< --fusion-threshold-mb
  std::string backend = "auto";  ///< --backend auto|mpi|shared|nccl
  bool cuda_aware = false;       ///< MPI is given a GPU's memory
  Index digest_every = 0;        ///< --check-weights N: cross-rank digest every N steps
  Index check_arithmetic = 0;    ///< --check-arithmetic N: another rank repeats a step every N steps
  StallLimits deadline;          ///< --stall-warning-seconds, --stall-abort-seconds
};

struct CheckpointConfig {
  std::string folder;     ///< --checkpoint-dir; default OUTPUT/checkpoints
  double save_every = 1;  ///< epochs; 0 = only at the end
  Index save_every_steps = 0;
  double save_every_minutes = 0;
  bool save_auto = false;          ///< --save-every-minutes auto: sqrt(2 C M) from the measured time of a save
  double mean_failure_hours = 24;  ///< --mtbf: M of that formula, for the whole job
  int keep = 3;
  std::string resume;     ///< path, `auto`, or empty
  std::string weights;    ///< --weights PATH: weights only
  bool new_head = false;  ///< --new-head: the last layer of --weights starts anew
  bool restart = false;   ///< --restart: begin anew though --resume auto finds only what it can't continue from
  bool save = true;       ///< --no-checkpoints
};

/// Steps of a run, from 1; 0: none.
struct StepSpan {
  Index first = 0, last = 0;
};

struct OutputConfig {
  std::string folder;      ///< --output-dir; default runs/NAME-TIME
  std::string name;        ///< --name; default: the model
  Index print_every = 20;  ///< --print-freq, steps
  bool tensorboard = true;
  Index monitor = 0;
  StepSpan trace;  ///< --trace-steps
  bool quiet = false;
  double slow_factor = 1.5;   ///< --slow-factor: times the median of the hosts
  bool exclude_slow = false;  ///< --exclude-slow
};

/// What to do with ranks that the launcher left all on the same cores.
enum class Bind : std::uint8_t { cores, none };

struct DeviceConfig {
  std::string device = "auto";
  int threads = 0;
  Bind bind = Bind::cores;
  Precision precision = Precision::fp32;
  Tuning tuning = Tuning::rule;          ///< --tuning rule|measured
  std::string options;                   ///< --kernels, e.g. no-winograd
  Recompute recompute = Recompute::off;  ///< --recompute off|auto|all
};

/// What the run does about a loss or a gradient norm beyond its bound.
enum class OnSpike : std::uint8_t { off, warn, rollback };

struct TrainConfig {
  DataConfig data;
  GraphSpec model;                  ///< classes, channels, image_size are filled from the data
  std::vector<std::string> frozen;  ///< --freeze: patterns of find_frozen()
  ClassWeights class_weights;       ///< --class-weights
  std::vector<RateMultiplierConfig> rate_multipliers;
  std::vector<DecayMultiplierConfig> decay_multipliers;
  OptimiserConfig optimiser;
  EmaConfig ema;
  LookaheadConfig lookahead;  ///< in place of ema
  std::vector<PhaseConfig> phases;
  SyncConfig sync;
  CheckpointConfig checkpoint;
  OutputConfig output;
  DeviceConfig device;
  Index batch = 128;       ///< --batch-size: of a replica
  Index global_batch = 0;  ///< --global-batch: must equal batch * replicas where both are given
  bool batch_given = false;
  Index eval_batch = 256;
  double epochs = 90;
  double start_epoch = 0;
  double run_epochs = 0;    ///< this job's share; 0 = all
  Index max_steps = 0;      ///< of this job; 0 = all
  TimeLimit time_limit;     ///< --end-time, --time-limit, --end-margin
  double val_interval = 1;  ///< epochs; 0 = only at the end
  int topk = 5;
  double target_accuracy = 0;  ///< percent top-1; 0 = off
  OnSpike on_spike = OnSpike::warn;
  double spike_factor = 5;  ///< --spike-factor: times the median of earlier intervals
  Index patience = 0;       ///< validations without a new best that end the run; 0 = off
  std::uint64_t seed = 1;
  bool dry_run = false;
  double dry_run_seconds = 10;  ///< that a dry run may train to measure; 0: only sizes
  std::string card;             ///< --card: a GPU that is only described, for a dry run
  bool take_over = false;       ///< --take-over: begin though another job seems to be alive in the run directory
  double wait_for_other = 20;   ///< --wait-for-other: seconds until it must have ended
  bool skip_eval = false;
  int fault_rank = -1;         ///< --inject-fault KIND@RANK@STEP, for tests, see --help-all
  double fault_seconds = 0.1;  ///< that slow-data and slow-compute take of every batch of that rank
  Index fault_step = -1;
  std::string fault_kind;
  std::string command_line;
  std::string own_file;              ///< the configuration of the resumed run, where this job takes options from it
  std::vector<std::string> remarks;  ///< about the given options, for the log when the job starts
  std::set<std::string> said;  ///< options that the command line, a file or the configuration of a resumed run gave

  /// The decay at the end of the run of the average that is kept beside the weights (--ema-decay, --lookahead-steps);
  /// 0: there is none.
  double average_decay() const { return lookahead.steps > 0 ? 1 - lookahead.alpha : ema.decay; }
};

/// The data as validation shows them, and everything that uses the trained model after it: image size and resize are
/// those of validation.
DataConfig validation_data(DataConfig data);

/// Where data, image size or batch change: first epoch and the configuration from there on; phases in a row that agree
/// are one. At least one entry, the first at epoch 0.
std::vector<std::pair<Index, TrainConfig>> data_phases(const TrainConfig& config);

struct EvaluateConfig {
  DataConfig data;
  std::string checkpoint;  ///< file or run directory
  /// For a file of tensors that doesn't name its network. norm_epsilon not set: that of the program that wrote it.
  GraphSpec model{.model = ""};
  WeightChoice choice = WeightChoice::usual;  ///< --ema, --no-ema
  std::string split = "val";
  DeviceConfig device;
  StallLimits deadline;
  TimeLimit time_limit;
  Index batch = 256;
  int topk = 5;
  std::string output_folder;  ///< confusion.csv, per_class.csv, result.json; empty: none
  std::string command_line;
};

enum class PredictFormat : std::uint8_t { text, json, csv };

struct PredictConfig {
  std::vector<std::string> paths;  ///< image files, folders of them, or one prepared data set
  std::string checkpoint;          ///< file or run directory
  GraphSpec model{.model = ""};    ///< as in EvaluateConfig
  WeightChoice choice = WeightChoice::usual;
  std::string split = "val";  ///< of a prepared data set
  DataConfig data;            ///< image size and resize, if they differ from training's
  DeviceConfig device;
  StallLimits deadline;
  Index batch = 64;
  int topk = 5;
  PredictFormat format = PredictFormat::text;
  std::string output;  ///< file; empty: standard output
};

struct BenchConfig {
  std::string what;  ///< compute, scaling, io, comm
  DataConfig data;
  GraphSpec model;
  std::vector<std::string> frozen;  ///< compute; as in TrainConfig
  Index classes = 0, channels = 0;  ///< compute; 0: as usual for the model
  DeviceConfig device;
  StallLimits deadline;
  Index batch = 128;
  Index steps = 20, warmup = 3;
  double megabytes = 100;  ///< comm: message size; 0 = a sweep
  bool reproducible = false;
  std::string backend = "auto";  ///< --backend; comm: also `all`, every one that is possible
  bool cuda_aware = false;
  bool gradients = true;  ///< compute: with a reduction of gradients over the ranks
  bool forward = false;   ///< compute: the forward pass of an evaluation, and no training
  bool profile = false;   ///< compute: a table of the parts of a step
  bool strong = false;    ///< scaling: the batch is that of all ranks together
  std::string csv;        ///< scaling, compute with profile: file; empty: none
  std::string machine;    ///< compute, comm: description that what was measured is added to; empty: none
  std::string machine_name = "this machine";  ///< of a new one
};

struct PreflightConfig {
  TrainConfig train;  ///< of the job to come: data set, run directory, device, deadlines
  bool json = false;
  double stress_seconds = 0;  ///< --stress; 0: no stress test
};

struct PreviewConfig {
  TrainConfig train;  ///< what training would be told
  int samples = 6, appearances = 8;
  std::string output = "preview.html";
};

struct InspectConfig {
  std::string what;  ///< data, checkpoint, plan, build
  std::string path;
  TrainConfig train;                ///< plan: model, device, batch
  Index classes = 0, channels = 0;  ///< plan; 0: as usual for the model
  std::string card;                 ///< plan: file that describes a CUDA card; empty: the program of --device
};

struct StatusConfig {
  std::string folder;          ///< a run directory; empty: the job has none
  int after = -1;              ///< --after: the launcher's exit code
  Index attempts_before = -1;  ///< --attempts-before
  Index resubmissions = -1;    ///< --resubmissions: the most; negative: not for a job script that submits itself
  double job_end = 0;          ///< --job-end, seconds since 1970; 0: not known
  double told_to_end = 0;      ///< --told-to-end, seconds since 1970; 0: it was not
  bool keeps_nothing = false;  ///< --keeps-nothing
  std::string partitions;      ///< --partitions: the folder of a preparation; empty: the job prepares nothing
  Index partitions_made = 0;   ///< --partitions-made
  bool json = false;
};

}  // namespace convoy
