// SPDX-License-Identifier: Apache-2.0
#include "train/setup.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "data/evaluation.hpp"

namespace convoy {

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

}  // namespace

EngineSpec engine_spec(const TrainConfig& config, const Job& job, const Splits& splits) {
  const AugmentSpec augment = augment_spec(config.data, splits.train, config.seed, Use::training);
  constexpr double floats_per_mb = 262144;
  EngineSpec spec{
      .device = config.device,
      .plan = {.replicas = job.replicas,
               .bucket_floats = std::max<Index>(16, static_cast<Index>(config.sync.bucket_mb * floats_per_mb)),
               .weight_decay = static_cast<float>(config.optimiser.weight_decay),
               .norm_weight_decay = static_cast<float>(config.optimiser.norm_weight_decay),
               .bias_weight_decay = static_cast<float>(config.optimiser.bias_weight_decay),
               .sync_bn = config.sync.sync_bn},
      .optimiser = {.rule = config.optimiser.rule,
                    .clip_norm = static_cast<float>(config.optimiser.clip_norm),
                    .loss_scale = loss_scale(config)},
      .input = input_spec(config.data, splits.train, augment),
      .height = augment.height,
      .width = augment.width,
      .train_sizes = batch_sizes(job.order),
      .topk = static_cast<int>(std::min<Index>(config.topk, splits.train.classes))};
  if (splits.has_val) {
    const Index largest = EvaluationBatches::share(splits.val.samples, job.ranks, 0).count;
    spec.eval_size = std::clamp<Index>(largest, 1, config.eval_batch);
    spec.eval_input =
        input_spec(config.data, splits.val, augment_spec(config.data, splits.val, config.seed, Use::evaluation));
  }
  return spec;
}

}  // namespace convoy
