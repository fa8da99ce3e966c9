// SPDX-License-Identifier: Apache-2.0
#include "train/setup.hpp"

#include <algorithm>
#include <filesystem>

#include "core/counted.hpp"
#include "core/errors.hpp"
#include "data/evaluation.hpp"
#include "data/partition.hpp"

namespace convoy {

namespace {

/// Two folders may hold other sizes or other images, but a class has to be the same class; what lies in one folder was
/// made together.
void require_one_preparation(const DatasetInfo& train, const DatasetInfo& val) {
  std::error_code unknown;
  if (std::filesystem::equivalent(train.folder, val.folder, unknown)) {
    require_same_set(read_partition(train.partitions.front().path), read_partition(val.partitions.front().path));
  } else if (train.class_names != val.class_names) {
    const auto at = std::mismatch(train.class_names.begin(), train.class_names.end(), val.class_names.begin());
    fail(Exit::data,
         "train split '{}' and val split '{}' have other classes (class {} is '{}' and '{}'); prepare both together",
         train.folder, val.folder, at.first - train.class_names.begin(), *at.first, *at.second);
  }
}

}  // namespace

Splits open_splits(const TrainConfig& config) {
  Splits splits;
  splits.train = open_split(config.data, "train");
  splits.has_val = !config.skip_eval && split_exists(config.data, "val");
  if (!splits.has_val) return splits;
  splits.val = open_split(config.data, "val");
  if (splits.val.classes != splits.train.classes || splits.val.channels != splits.train.channels) {
    fail(Exit::data,
         "train split '{}' and val split '{}' differ: {} and {} classes, {} and {} channels; prepare both together",
         splits.train.folder, splits.val.folder, splits.train.classes, splits.val.classes, splits.train.channels,
         splits.val.channels);
  }
  if (!config.data.synthetic) require_one_preparation(splits.train, splits.val);
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

/// Of a leg that plan_legs has filled.
EngineForm engine_form(const Leg& leg) {
  const DataConfig& data = leg.config.data;
  EngineForm form{.input = input_spec(data, leg.splits.train, leg.augment),
                  .height = leg.augment.height,
                  .width = leg.augment.width,
                  .train_sizes = batch_sizes(leg.job.order)};
  if (leg.splits.has_val) {
    form.eval_size = leg.evaluation.batch;
    form.eval_input = input_spec(data, leg.splits.val, leg.evaluation.augment);
    form.eval_shapes = shapes_of(leg.evaluation.groups);
  }
  return form;
}

}  // namespace

std::vector<Leg> open_legs(const TrainConfig& config) {
  std::vector<Leg> legs;
  for (auto& [begin, changed] : data_phases(config)) {
    Leg& leg = legs.emplace_back();
    leg.begin_epoch = begin;
    leg.config = changed;
    leg.splits = open_splits(changed);
    const Splits &first = legs.front().splits, &own = leg.splits;
    if (own.train.class_names != first.train.class_names || own.train.channels != first.train.channels ||
        own.has_val != first.has_val) {
      fail(Exit::data, "the data sets '{}' and '{}' of two phases don't belong together (classes, channels or splits)",
           first.train.folder, own.train.folder);
    }
    if (own.has_val) leg.val_groups = val_groups(changed.data, own.val);
  }
  return legs;
}

void plan_legs(std::vector<Leg>& legs, int ranks, int rank, int replicas) {
  std::vector<Stretch> stretches;
  for (Leg& leg : legs) {
    leg.job = plan_job(leg.config, leg.splits.train.samples, ranks, rank, replicas);
    leg.augment = augment_spec(leg.config.data, leg.splits.train, leg.config.seed, Use::training);
    leg.topk = static_cast<int>(std::min<Index>(leg.config.topk, leg.splits.train.classes));
    stretches.push_back({.begin_epoch = leg.begin_epoch, .steps_per_epoch = leg.job.steps_per_epoch});
    if (!leg.splits.has_val) continue;
    const Index largest = EvaluationBatches::share(leg.splits.val.samples, ranks, 0).count;
    leg.evaluation = {.augment = augment_spec(leg.config.data, leg.splits.val, leg.config.seed, Use::evaluation),
                      .batch = std::clamp<Index>(largest, 1, leg.config.eval_batch),
                      .workers = leg.config.data.workers,
                      .prefetch = leg.config.data.prefetch,
                      .groups = share_of(leg.val_groups, ranks, rank)};
  }
  const Timeline timeline(stretches);
  for (Leg& leg : legs) {
    leg.job.timeline = timeline;
    leg.job.total_steps = timeline.step(leg.config.epochs);
  }
}

EngineSpec engine_spec(const std::vector<Leg>& legs) {
  const Leg& first = legs.front();
  const TrainConfig& config = first.config;
  constexpr double floats_per_mb = 262144;
  EngineSpec spec{
      .device = config.device,
      .plan = {.replicas = first.job.replicas,
               .bucket_floats = std::max<Index>(16, static_cast<Index>(config.sync.bucket_mb * floats_per_mb)),
               .weight_decay = static_cast<float>(config.optimiser.weight_decay),
               .norm_weight_decay = static_cast<float>(config.optimiser.norm_weight_decay),
               .bias_weight_decay = static_cast<float>(config.optimiser.bias_weight_decay),
               .sync_bn = config.sync.sync_bn},
      .optimiser = {.rule = config.optimiser.rule,
                    .clip_norm = static_cast<float>(config.optimiser.clip_norm),
                    .loss_scale = loss_scale(config)},
      .topk = first.topk};
  for (const Leg& leg : legs) spec.forms.push_back(engine_form(leg));
  return spec;
}

std::set<std::string> data_warnings(const std::vector<Leg>& legs) {
  std::set<std::string> warnings;
  for (const Leg& leg : legs) {
    const DatasetInfo& train = leg.splits.train;
    const bool made = leg.config.data.synthetic;
    if (!made && train.encoding == "raw" && (leg.augment.height > train.height || leg.augment.width > train.width)) {
      warnings.insert(fmt::format(
          "'{}' holds images of {}x{} pixels, which are enlarged to {}x{}; prepare larger ones (--sizes, or "
          "--encoding jpeg), or train with --image-size {}",
          train.folder, train.height, train.width, leg.augment.height, leg.augment.width, train.height));
    }
    if (leg.splits.has_val) warnings.insert(shape_warning(leg.config.data, leg.splits.val, leg.val_groups));
  }
  warnings.erase("");
  return warnings;
}

std::vector<double> rate_factors(const std::vector<Leg>& legs) {
  std::vector<double> factors;
  for (const Leg& leg : legs) {
    const bool given = leg.config.optimiser.schedule.decay == Decay::phases;
    factors.push_back(given ? 1 : leg.job.peak_rate / legs.front().job.peak_rate);
  }
  return factors;
}

std::vector<Index> global_batches(const std::vector<Leg>& legs) {
  std::vector<Index> batches;
  batches.reserve(legs.size());
  for (const Leg& leg : legs) batches.push_back(leg.job.global_batch);
  return batches;
}

std::string describe(const std::vector<Leg>& legs) {
  std::string text;
  for (const Leg& leg : legs) {
    text += fmt::format("{}from epoch {}: {} x {} pixels, global batch {}, {} an epoch", text.empty() ? "" : "; ",
                        leg.begin_epoch + 1, leg.augment.height, leg.augment.width, leg.job.global_batch,
                        counted(leg.job.steps_per_epoch, "step"));
  }
  return text;
}

}  // namespace convoy
