// SPDX-License-Identifier: Apache-2.0
#include "infer/average.hpp"

#include <filesystem>
#include <vector>

#include "checkpoint/file.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "infer/host_model.hpp"
#include "infer/output_file.hpp"

namespace convoy {
namespace {

/// What the models of one average must share.
void require_alike(const SavedModel& first, const SavedModel& other) {
  const FileMeta &a = first.file, &b = other.file;
  const TrainedData &learned = a.meta.data, &data = b.meta.data;
  std::string difference;
  if (a.model != b.model) {
    difference = fmt::format("networks {} and {}", a.model, b.model);
  } else if (learned.class_names.size() != data.class_names.size()) {
    difference = fmt::format("{} and {}", counted(learned.class_names.size(), "class"),
                             counted(data.class_names.size(), "class"));
  } else if (a.meta.plan_digest != b.meta.plan_digest) {
    difference = fmt::format("other attributes of {}", a.model);
  } else if (learned.class_names != data.class_names) {
    difference = "other classes";
  } else if (learned.train_digest != data.train_digest) {
    difference =
        fmt::format("other training samples, digests {:016x} and {:016x}", learned.train_digest, data.train_digest);
  } else if (!normalise_alike(learned, data)) {
    difference =
        fmt::format("input is normalised with {} and with {}", normalisation_text(learned), normalisation_text(data));
  }
  if (difference.empty()) return;
  fail(Exit::data, "'{}' and '{}' can't be averaged ({}); give checkpoints of one network and one data set", first.path,
       other.path, difference);
}

/// What is legal and perhaps not meant.
void warn_of(const SavedModel& first, const SavedModel& other) {
  std::error_code unknown;
  if (std::filesystem::equivalent(first.path, other.path, unknown))
    log::warn("'{}' is given twice, so it counts twice", other.path);
  const TrainedData &a = first.file.meta.data, &b = other.file.meta.data;
  if (a.input_height != b.input_height || a.input_width != b.input_width)
    log::warn(
        "'{}' is evaluated on {}x{} pixels and '{}' on {}x{}: the running statistics of the average fit neither size; "
        "average checkpoints of one size",
        first.path, a.input_height, a.input_width, other.path, b.input_height, b.input_width);
}

/// That of the model that has trained longest, whose optimiser and accuracy are no longer those of the weights.
FileMeta meta_of_average(const std::vector<SavedModel>& models) {
  const SavedModel* newest = &models.front();
  std::string paths;
  for (const SavedModel& model : models) {
    if (model.file.meta.position.step > newest->file.meta.position.step) newest = &model;
    paths += model.path + "\n";
  }
  FileMeta file = newest->file;
  CheckpointMeta& meta = file.meta;
  meta.run.clear();
  meta.attempt = 0;
  meta.local_steps = 0;
  meta.ema_decay = 0;
  meta.has_outer = false;
  meta.compression = {};
  meta.replicas = meta.ranks = 1;
  meta.texts = {{"model", meta.texts["model"]},
                {"configuration", meta.texts["configuration"]},
                {"build", build_id()},
                {"average_of", paths}};
  meta.numbers.clear();
  file.shards.clear();
  return file;
}

}  // namespace

std::string average_models(const AverageConfig& config) {
  std::vector<SavedModel> models;
  std::vector<std::string> paths;
  for (const std::string& path : config.checkpoints) {
    models.push_back(find_model(path));
    paths.push_back(models.back().path);
    require_alike(models.front(), models.back());
    for (std::size_t i = 0; i + 1 < models.size(); ++i) warn_of(models[i], models.back());
  }
  require_free(config.output, config.overwrite ? Existing::is_replaced : Existing::stays, paths);
  HostModel mean;
  std::vector<double> sums;
  for (const SavedModel& model : models) {
    mean = read_model(model);
    sums.resize(mean.set.block.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(mean.set.block[i]);
  }
  const auto count = static_cast<double>(models.size());
  for (std::size_t i = 0; i < sums.size(); ++i) mean.set.block[i] = static_cast<float>(sums[i] / count);
  write_set_file(config.output, mean.plan, mean.layout, meta_of_average(models), {.set = mean.set});
  return fmt::format("{}: mean of {} of {}", config.output, counted(models.size(), "checkpoint"),
                     mean.plan.graph.model);
}

}  // namespace convoy
