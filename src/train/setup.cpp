// SPDX-License-Identifier: Apache-2.0
#include "train/setup.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/text.hpp"
#include "data/evaluation.hpp"
#include "data/partition.hpp"
#include "network/freeze.hpp"
#include "network/patterns.hpp"
#include "network/taken_name.hpp"
#include "train/class_weights.hpp"

namespace convoy {

namespace {

/// What lies in one folder was made together. Another folder may hold other sizes, classes in another order, other
/// images: see_as_model judges them.
void require_one_preparation(const DatasetInfo& train, const DatasetInfo& val) {
  std::error_code unknown;
  if (std::filesystem::equivalent(train.folder, val.folder, unknown))
    require_same_set(read_partition(train.partitions.front().path), read_partition(val.partitions.front().path));
}

}  // namespace

SplitHeaders read_headers(const TrainConfig& config) {
  SplitHeaders headers;
  headers.train = open_split(config.data, "train");
  if (config.class_weights.given() || config.data.balance == Balance::classes)
    headers.labels = labels_of(config.data, headers.train, {0, used_samples(config.data, headers.train.samples)});
  headers.has_val = !config.skip_eval && split_exists(config.data, "val");
  if (!headers.has_val) return headers;
  headers.val = open_split(config.data, "val");
  if (!config.data.synthetic) require_one_preparation(headers.train, headers.val);
  headers.val_groups = val_groups(validation_data(config.data), headers.val);
  return headers;
}

std::vector<SplitHeaders> read_all_headers(const TrainConfig& config) {
  std::vector<SplitHeaders> all;
  for (const auto& [begin, changed] : data_phases(config)) all.push_back(read_headers(changed));
  return all;
}

Splits make_splits(const TrainConfig& config, SplitHeaders headers) {
  Splits splits;
  splits.train = std::move(headers.train);
  splits.val = std::move(headers.val);
  splits.has_val = headers.has_val;
  if (!splits.has_val) return splits;
  splits.val_data = validation_data(config.data);
  require_mean_per_channel(config.data, splits.train);
  const TrainedData learned = trained_data(config.data, splits.train, splits.val.digest);
  splits.val_verdict =
      see_as_model({learned, fmt::format("train split '{}'", splits.train.folder)}, splits.val, splits.val_data);
  return splits;
}

namespace {

/// The first value of a dynamic loss scale: torch.amp.GradScaler's, too.
constexpr float dynamic_loss_scale = 65536;

LossScale loss_scale(const TrainConfig& config) {
  if (config.device.precision != Precision::fp16) return {};
  const OptimiserConfig& optimiser = config.optimiser;
  if (optimiser.loss_scale > 0) return {.start = static_cast<float>(optimiser.loss_scale)};
  return {.start = dynamic_loss_scale, .grow_every = optimiser.loss_scale_window};
}

std::vector<RateMultiplier> rate_multipliers(const TrainConfig& config, const Timeline& timeline) {
  std::vector<RateMultiplier> multipliers;
  for (const RateMultiplierConfig& one : config.rate_multipliers)
    multipliers.push_back(
        {one.pattern, static_cast<float>(one.factor), one.epochs > 0 ? timeline.step(one.epochs) : never});
  return multipliers;
}

std::vector<DecayMultiplier> decay_multipliers(const TrainConfig& config) {
  std::vector<DecayMultiplier> multipliers;
  for (const DecayMultiplierConfig& one : config.decay_multipliers)
    multipliers.push_back({one.pattern, static_cast<float>(one.factor)});
  return multipliers;
}

/// Of a phase that plan_phases has filled.
ProgramSizes program_sizes(const TrainingPhase& phase) {
  const DataConfig& data = phase.config.data;
  ProgramSizes sizes{.input = input_spec(data, phase.splits.train, phase.augment),
                     .height = phase.augment.height,
                     .width = phase.augment.width,
                     .train_sizes = batch_sizes(phase.job.order),
                     .class_weights = phase.class_weights};
  if (phase.splits.has_val) {
    sizes.eval_size = phase.evaluation.batch;
    sizes.eval_crop = {phase.evaluation.augment.height, phase.evaluation.augment.width};
    sizes.eval_input = input_spec(phase.splits.val_data, phase.splits.val, phase.evaluation.augment);
    sizes.eval_shapes = shapes_of(phase.evaluation.groups);
  }
  return sizes;
}

/// Every rank knows the labels of all samples, so that none needs another.
void use_labels(TrainingPhase& phase, const SplitHeaders& read) {
  if (read.labels.empty()) return;
  const TrainConfig& config = phase.config;
  phase.class_weights = loss_weights(config.class_weights, count_classes(read.labels, read.train.classes), read.train);
  if (config.data.balance == Balance::classes) phase.classes = std::make_shared<const ClassLists>(read.labels);
}

}  // namespace

std::vector<TrainingPhase> open_phases(const TrainConfig& config) {
  return open_phases(config, read_all_headers(config));
}

std::vector<TrainingPhase> open_phases(const TrainConfig& config, std::vector<SplitHeaders> headers) {
  std::vector<TrainingPhase> phases;
  for (auto& [begin, changed] : data_phases(config)) {
    TrainingPhase& phase = phases.emplace_back();
    phase.begin_epoch = begin;
    phase.config = changed;
    SplitHeaders& read = headers.at(phases.size() - 1);
    use_labels(phase, read);
    phase.val_groups = std::move(read.val_groups);
    phase.splits = make_splits(changed, std::move(read));
    const Splits &first = phases.front().splits, &own = phase.splits;
    if (own.train.class_names != first.train.class_names || own.train.channels != first.train.channels ||
        own.has_val != first.has_val) {
      fail(Exit::data, "the data sets '{}' and '{}' of two phases don't belong together (classes, channels or splits)",
           first.train.folder, own.train.folder);
    }
  }
  return phases;
}

Graph build_network(const std::vector<TrainingPhase>& phases) {
  const TrainingPhase& first = phases.front();
  Graph graph = build_graph(graph_spec(first.config.model, first.config.data, first.splits.train));
  // What is wrong with a pattern is said here, before the samples are read.
  find_frozen(graph, first.config.frozen);
  for (const auto& one : first.config.rate_multipliers) find_parameters(graph, "--lr-mult", one.pattern);
  for (const auto& one : first.config.decay_multipliers) find_parameters(graph, "--decay-mult", one.pattern);
  for (const TrainingPhase& phase : phases) {
    const Splits& splits = phase.splits;
    const Index wanted = phase.config.data.val_image_size;
    if (wanted == 0 || !splits.has_val) continue;
    const ImageSize shown = input_size(phase.config.data, splits.train), val = input_size(splits.val_data, splits.val);
    try {
      infer_shapes(graph, val.height, val.width);
    } catch (const Error& error) {
      fail(
          error.code(),
          "--val-image-size {} is not possible: {} is built for images of {} x {} and can't take {} x {} ({}); leave it out, or choose a network that ends in global pooling",
          wanted, graph.model, shown.height, shown.width, val.height, val.width, error.what());
    }
  }
  return graph;
}

TrainedData data_of(const TrainingPhase& phase) {
  const Splits& splits = phase.splits;
  return trained_data(phase.config.data, splits.train, splits.has_val ? splits.val.digest : 0);
}

void plan_phases(std::vector<TrainingPhase>& phases, int ranks, int rank, int replicas) {
  std::vector<PhaseSteps> steps;
  for (TrainingPhase& phase : phases) {
    phase.job = plan_job(phase.config, phase.splits.train.samples, ranks, rank, replicas, phase.classes);
    phase.augment = augment_spec(phase.config.data, phase.splits.train, phase.config.seed, Use::training);
    phase.topk = static_cast<int>(std::min<Index>(phase.config.topk, phase.splits.train.classes));
    steps.push_back({.begin_epoch = phase.begin_epoch, .steps_per_epoch = phase.job.steps_per_epoch});
    if (!phase.splits.has_val) continue;
    const Index largest = EvaluationBatches::share(phase.splits.val.samples, ranks, 0).count;
    phase.evaluation = {
        .augment = augment_spec(phase.splits.val_data, phase.splits.val, phase.config.seed, Use::evaluation),
        .batch = std::clamp<Index>(largest, 1, phase.config.eval_batch),
        .workers = phase.config.data.workers,
        .prefetch = phase.config.data.prefetch,
        .groups = share_of(phase.val_groups, ranks, rank)};
  }
  const Timeline timeline(steps);
  for (TrainingPhase& phase : phases) {
    phase.job.timeline = timeline;
    phase.job.total_steps = timeline.step(phase.config.epochs);
  }
}

bool repeats_in_own_set(const TrainConfig& config, const JobShape& job) {
  return config.sync.check_arithmetic > 0 && local_steps_of_checkpoint(job.sync) > 0;
}

int kept_sets(const TrainConfig& config, const JobShape& job) {
  const bool has_average = config.average_decay() > 0, holds_other = repeats_in_own_set(config, job);
  return parameter_sets(job.sync, job.turns) + (has_average ? 1 : 0) + (holds_other ? 1 : 0);
}

EngineSpec engine_spec(const std::vector<TrainingPhase>& phases) {
  const TrainingPhase& first = phases.front();
  const TrainConfig& config = first.config;
  constexpr double floats_per_mb = 262144;
  EngineSpec spec{
      .device = config.device,
      .plan = {.replicas = first.job.replicas,
               .bucket_floats = std::max<Index>(16, static_cast<Index>(config.sync.bucket_mb * floats_per_mb)),
               .weight_decay = static_cast<float>(config.optimiser.weight_decay),
               .norm_weight_decay = static_cast<float>(config.optimiser.norm_weight_decay),
               .bias_weight_decay = static_cast<float>(config.optimiser.bias_weight_decay),
               .sync_bn = config.sync.sync_bn,
               .frozen = config.frozen,
               .rate_multipliers = rate_multipliers(config, first.job.timeline),
               .decay_multipliers = decay_multipliers(config)},
      .optimiser = {.rule = config.optimiser.rule,
                    .clip_norm = static_cast<float>(config.optimiser.clip_norm),
                    .loss_scale = loss_scale(config),
                    .keeps_correction = config.sync.overlap},
      .topk = first.topk};
  for (const TrainingPhase& phase : phases) spec.sizes.push_back(program_sizes(phase));
  const int sets = kept_sets(config, first.job);
  spec.set_floats = [sets, sync = first.job.sync](const SetLayout& layout, const ParameterTable& table) {
    return sets * layout.count() + sync_floats(sync, layout, table);
  };
  return spec;
}

std::set<std::string> data_warnings(const std::vector<TrainingPhase>& phases) {
  std::set<std::string> warnings;
  for (const TrainingPhase& phase : phases) {
    const DatasetInfo& train = phase.splits.train;
    const bool made = phase.config.data.synthetic;
    const auto warn_of_size = [&](const AugmentSpec& shown, const char* option) {
      if (made || train.encoding != "raw" || (shown.height <= train.height && shown.width <= train.width)) return;
      warnings.insert(fmt::format(
          "'{}' holds images of {}x{} pixels, which are enlarged to {}x{}; prepare larger ones (--sizes, or --encoding jpeg), or give {} {}",
          train.folder, train.height, train.width, shown.height, shown.width, option, train.height));
    };
    warn_of_size(phase.augment, "--image-size");
    if (phase.splits.has_val && phase.config.data.val_image_size > 0)
      warn_of_size(phase.evaluation.augment, "--val-image-size");
    if (!made && train.encoding == "raw" && phase.config.data.augment.scaled_decoding)
      warnings.insert(fmt::format(
          "--scaled-decoding has no effect: '{}' holds pixels, not files to decode; drop it, or prepare the "
          "set with --encoding jpeg",
          train.folder));
    if (!phase.splits.has_val) continue;
    const Splits& splits = phase.splits;
    warnings.insert(shape_warning(splits.val_data, splits.val, phase.val_groups));
    warnings.insert(splits.val_verdict.notes.begin(), splits.val_verdict.notes.end());
    warnings.insert(splits.val_verdict.warnings.begin(), splits.val_verdict.warnings.end());
  }
  warnings.erase("");
  return warnings;
}

std::vector<std::string> job_warnings(const std::vector<TrainingPhase>& phases) {
  const TrainingPhase& first = phases.front();
  const JobShape& job = first.job;
  std::vector<std::string> texts;
  if (job.replicas < job.ranks) {
    const int idle = job.ranks - job.replicas;
    texts.push_back(fmt::format("{} has no replica and only waits ({} on {}); start {}, or give --replicas {}",
                                idle == 1 ? fmt::format("rank {}", job.replicas)
                                          : fmt::format("each of ranks {} to {}", job.replicas, job.ranks - 1),
                                counted(job.replicas, "replica"), counted(job.ranks, "rank"),
                                counted(job.replicas, "rank"), job.ranks));
  }
  const Index wanted = job.order.batch * job.replicas;
  const char* fewer_ranks = job.replicas > 1 ? ", or start fewer ranks" : "";
  if (wanted > job.order.samples && job.order.mode == EpochMode::resample) {
    texts.push_back(fmt::format(
        "a step draws {} from a set of {} (--epoch-mode resample), each {:.2g} times on average, and an epoch is one step; "
        "lower --batch-size{}",
        counted(wanted, "image"), job.order.samples,
        static_cast<double>(wanted) / static_cast<double>(job.order.samples), fewer_ranks));
  } else if (wanted > job.order.samples) {
    texts.push_back(fmt::format(
        "a step takes {}: the batch of {} is larger than the set, so an epoch is one step{}; lower --batch-size{}",
        job.order.samples == 1 ? "the only training image" : fmt::format("all {} training images", job.order.samples),
        wanted,
        first.config.optimiser.scaling == Scaling::none ? "" : ", and its learning rate is that of the set's size",
        fewer_ranks));
  }
  if (!first.config.sync.wire.is_plain() && job.replicas == 1)
    texts.push_back(
        fmt::format("--wire {} has no effect: one replica has nothing to send; start more ranks, or drop it",
                    name_of(first.config.sync.wire)));
  const EmaConfig& ema = first.config.ema;
  const auto steps = static_cast<double>(job.total_steps), every = static_cast<double>(ema.steps);
  if (const double updates = 1 / (1 - ema.decay); ema.decay > 0 && updates * every > steps) {
    const double per_update = (1 - ema.decay) * static_cast<double>(job.global_batch) * every / first.config.epochs;
    const double tenth = 1 - 10 * every / steps;
    const std::string converted =
        per_update < 1
            ? fmt::format(
                  "; torchvision's --model-ema-decay {} with --model-ema-steps {} corresponds to --ema-decay {:.8g}",
                  ema.decay, ema.steps, 1 - per_update)
            : std::string();
    texts.push_back(fmt::format(
        "--ema-decay {} averages over {:.0f} steps, but the run has {}: the average, which validation and checkpoints take, "
        "stays near the first weights{}{}",
        ema.decay, updates * every, counted(job.total_steps, "step"),
        tenth > 0 ? fmt::format("; --ema-decay {:.6g} averages over a tenth of the run", tenth) : std::string(),
        converted));
  }
  if (const Index period = first.config.lookahead.steps; period > job.total_steps)
    texts.push_back(fmt::format(
        "--lookahead-steps {}, but the run has {}: the slow weights, which validation and checkpoints take, move only once, at the end",
        period, counted(job.total_steps, "step")));
  if (first.config.checkpoint.new_head && first.config.checkpoint.weights.empty())
    texts.emplace_back(
        "--new-head (or new-head of the configuration) has no effect without --weights: the whole network begins with "
        "random weights; give --weights FILE");
  if (has_taken_name(graph_spec(first.config.model, first.config.data, first.splits.train)))
    texts.push_back(fmt::format(
        "the network of --model-file is called '{}' and differs from Convoy's: logs and checkpoints can't tell "
        "them apart; give it a name of its own",
        first.config.model.model));
  for (const RatePhase& gap : epochs_between_phases(schedule_of(first.config, job.peak_rate)))
    texts.push_back(fmt::format(
        "no [phase.N] has the learning rate of epochs {:g}:{:g}, so it stays at {:g}; give them a phase, or lower --epochs",
        gap.begin_epoch, gap.end_epoch, gap.from));
  return texts;
}

std::vector<double> rate_factors(const std::vector<TrainingPhase>& phases) {
  std::vector<double> factors;
  for (const TrainingPhase& phase : phases) {
    const bool given = phase.config.optimiser.schedule.decay == Decay::phases;
    factors.push_back(given ? 1 : phase.job.peak_rate / phases.front().job.peak_rate);
  }
  return factors;
}

std::string tell_validation(const TrainingPhase& phase) {
  if (!phase.splits.has_val) return "no validation";
  const AugmentSpec &train = phase.augment, &val = phase.evaluation.augment;
  const bool alike = val.height == train.height && val.width == train.width;
  return counted(phase.splits.val.samples, "validation image") +
         (alike ? "" : fmt::format(" of {}x{}", val.height, val.width));
}

std::string describe(const std::vector<TrainingPhase>& phases) {
  std::string text;
  for (const TrainingPhase& phase : phases) {
    text += fmt::format("{}from epoch {}: {} x {} pixels, global batch {}, {} per epoch", text.empty() ? "" : "; ",
                        phase.begin_epoch + 1, phase.augment.height, phase.augment.width, phase.job.global_batch,
                        counted(phase.job.steps_per_epoch, "step"));
  }
  return text;
}

void require_same_frozen(const TrainConfig& config, const CheckpointMeta& meta) {
  TrainConfig stored;
  try {
    stored = parse_ini(meta.texts.at("configuration"));
  } catch (const std::exception&) {
    return;  // of another version
  }
  if (stored.frozen == config.frozen) return;
  const auto said = [](const TrainConfig& each) {
    return each.frozen.empty() ? std::string("nothing") : fmt::format("'{}'", fmt::join(each.frozen, ","));
  };
  fail(
      Exit::usage,
      "the run froze {} and --freeze says {}, whose optimizer states differ; give the same, or start a new run from its weights with --weights",
      said(stored), said(config));
}

}  // namespace convoy
