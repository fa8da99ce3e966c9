// SPDX-License-Identifier: Apache-2.0
#include "infer/evaluate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "checkpoint/resume.hpp"
#include "comm/agreed_error.hpp"
#include "comm/communicator.hpp"
#include "comm/time_limit.hpp"
#include "config/parse.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/stop.hpp"
#include "core/text.hpp"
#include "engine/data.hpp"
#include "engine/engine.hpp"
#include "engine/evaluator.hpp"
#include "engine/model_data.hpp"
#include "engine/shared_data.hpp"
#include "engine/step_vote.hpp"
#include "infer/confusion.hpp"
#include "infer/model_file.hpp"
#include "infer/worst_images.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"
#include "metrics/console.hpp"

namespace convoy {
namespace {

/// In a run directory each split has a folder of its own.
std::string folder_for(const EvaluateConfig& config) {
  std::error_code unknown;
  const bool is_run = std::filesystem::exists(config.output_folder + "/config.cfg", unknown);
  return is_run ? config.output_folder + "/evaluation/" + config.split : config.output_folder;
}

/// What training decided and evaluation must repeat; where the data lie is this command's.
DataConfig data_of(const EvaluateConfig& config, const TrainConfig& trained) {
  DataConfig data = config.data;
  const DataConfig shown = validation_data(trained.data);
  if (data.folder.empty() && data.val_folder.empty() && data.train_folder.empty() && !data.synthetic) {
    data.folder = trained.data.folder;
    data.train_folder = trained.data.train_folder;
    data.val_folder = trained.data.val_folder;
    data.synthetic = trained.data.synthetic;
    data.synthetic_spec = trained.data.synthetic_spec;
  }
  data.normalise = trained.data.normalise;
  const Index resize = std::exchange(data.augment, shown.augment).resize;
  if (resize > 0) data.augment.resize = resize;
  if (data.image_size == 0) data.image_size = shown.image_size;
  if (data.rgb_mean.empty()) data.rgb_mean = trained.data.rgb_mean;
  if (data.rgb_std.empty()) data.rgb_std = trained.data.rgb_std;
  data.rectangular = data.rectangular || trained.data.rectangular;
  return data;
}

Json describe(const EvaluateConfig& config, const ModelFile& model, const DatasetInfo& info,
              const ValidationRecord& record) {
  Json json = Json::object({{"checkpoint", model.found.path},
                            {"split", config.split},
                            {"data", info.folder},
                            {"images", record.images},
                            {"top1_count", record.count(Counter::top1)},
                            {"top1", record.counters[Counter::top1]},
                            {"loss", record.counters[Counter::loss]},
                            {"seconds", record.seconds}});
  if (model.config.model.label_smoothing > 0)
    json["label_smoothing"] = std::round(model.config.model.label_smoothing * 1e6) / 1e6;
  if (const CheckpointMeta& meta = model.found.file.meta; meta.ema_decay > 0)
    json["weights"] = name_of_weights(meta, model.choice);
  if (record.is_partial()) json.set({{"partial", true}, {"split_images", record.split_images}});
  json[fmt::format("top{}_count", record.k)] = record.count(Counter::topk);
  json[fmt::format("top{}", record.k)] = record.counters[Counter::topk];
  return json;
}

/// The split that is evaluated, as this rank has it.
struct Split {
  DataConfig data;
  DatasetInfo info;
  std::vector<ShapeGroup> groups;  ///< of the whole split
  AugmentSpec augment;
  std::unique_ptr<Dataset> samples;  ///< of this rank
};

/// Collective.
Split open_data(Communicator& communicator, const EvaluateConfig& config, const ModelFile& model) {
  const int ranks = communicator.size(), rank = communicator.rank();
  const std::string& path = model.found.path;
  const TrainConfig& trained = model.config;
  Split split;
  DataConfig& data = split.data;
  DatasetInfo& info = split.info;
  run_agreed(communicator, "opening the data set", [&] {
    data = data_of(config, trained);
    if (!data.synthetic && folder_of(data, config.split).empty())
      fail(Exit::usage, "no data set is given, and '{}' names none; use --data DIR (made by convoy-preprocess)", path);
  });
  info = open_shared_split(communicator, data, config.split);
  run_agreed(communicator, "opening the data set", [&] {
    require_channels(model, info);
    data.image_size = input_side(model, data, info);
    const DataVerdict verdict = see_as_model(model.data(), info, data);
    if (rank == 0) {
      tell(verdict);
      split.groups = val_groups(data, info);
      if (const std::string warning = shape_warning(data, info, split.groups); !warning.empty())
        log::warn("{}", warning);
    }
    log::info("{}", tell_input(info, augment_spec(data, info, trained.seed, Use::evaluation)));
  });
  share(communicator, split.groups);
  communicator.require_equal(fmt::format("{} {:016x}", path, info.digest), "checkpoint and data set");
  const Range own = EvaluationBatches::share(info.samples, ranks, rank);
  const auto patient = patient_ranks(communicator, config.deadline);
  run_agreed(*patient, "loading the samples", [&] {
    const ActivityScope phase(Activity::data);
    progress().doing("loading the samples");
    split.samples = load_evaluated(data, info, own, split.groups, samples_memory(data, communicator.node_size()));
  });
  split.augment = augment_spec(data, info, trained.seed, Use::evaluation);
  return split;
}

EngineSpec engine_spec(const EvaluateConfig& config, const Split& split, const std::vector<ShapeGroup>& own_groups,
                       int ranks) {
  const Index largest = EvaluationBatches::share(split.info.samples, ranks, 0).count;
  return {.device = config.device,
          .sizes = {{.eval_input = input_spec(split.data, split.info, split.augment),
                     .height = split.augment.height,
                     .width = split.augment.width,
                     .eval_size = std::min(config.batch, largest),
                     .eval_shapes = shapes_of(own_groups)}},
          .topk = static_cast<int>(std::min<Index>(config.topk, split.info.classes))};
}

/// What goes into the output folder beside result.json.
struct Tables {
  Confusion confusion;
  WorstImages worst;
  std::string worst_images = {};  ///< rank 0: as worst.json holds them
};

/// On rank 0. `json`: what result.json holds.
void write_tables(const EvaluateConfig& config, const DatasetInfo& info, const Json& json, const Tables& tables) {
  const std::string folder = folder_for(config);
  make_folder(folder, "choose a writable --output-dir");
  replace_text_file(folder + "/result.json", json.text(2, Json::Order::sorted) + "\n");
  tables.confusion.write(folder, info.class_names);
  replace_text_file(folder + "/worst.json", tables.worst_images);
  log::info("written to '{}'", folder);
}

/// Collective. Logs the result, and writes the tables if there is a folder for them.
void tell_result(Communicator& communicator, const EvaluateConfig& config, const ModelFile& model, const Split& split,
                 const ValidationRecord& record, const Tables& tables) {
  const DatasetInfo& info = split.info;
  const bool may_skip = split.data.on_corrupt == OnCorrupt::skip;
  std::array<std::int64_t, 1> skipped{split.samples->skipped()};
  if (may_skip) communicator.sum(std::span<std::int64_t>(skipped), "samples that were skipped");
  run_agreed(communicator, "writing the result", [&] {
    if (communicator.rank() != 0) return;
    if (record.images == 0)
      fail(Exit::data, "'{}' ({}) holds no image of a class that '{}' knows; give the set it was trained on",
           info.folder, info.split, model.found.path);
    Json json = describe(config, model, info, record);
    if (may_skip) json["skipped"] = skipped[0];
    log::info("{}: top1 {:.2f} % ({}/{}), {}loss {:.4f}{}", config.split, record.counters[Counter::top1],
              record.count(Counter::top1), record.images,
              record.k > 1 ? fmt::format("top{} {:.2f} %, ", record.k, record.counters[Counter::topk]) : std::string(),
              record.counters[Counter::loss], tell_part(record));
    log::info("{}", json.text(-1, Json::Order::sorted));  // before anything that can fail
    if (!config.output_folder.empty()) write_tables(config, info, json, tables);
    if (!std::isfinite(record.counters[Counter::loss]))
      fail(
          Exit::internal,
          "'{}' gives values that are not finite for images of '{}', so the result tells nothing; check its weights and running statistics ('convoy inspect checkpoint'), and --precision",
          model.found.path, info.folder);
  });
}

}  // namespace

Exit evaluate(Communicator& communicator, const EvaluateConfig& config) try {
  keep_time_limit(communicator, config.time_limit);
  const int ranks = communicator.size(), rank = communicator.rank();
  heed_interrupts(rank, "stopping after this batch, without a result");
  progress().doing("opening checkpoint and data set");
  ModelFile model;
  run_alike(communicator, [&] { model = open_model(communicator, config.checkpoint, config.model, config.choice); });
  if (assumes_input(model)) log::info("{}", tell_assumed_normalisation(model));
  const Split split = open_data(communicator, config, model);
  const std::vector<ShapeGroup> own_groups = share_of(split.groups, ranks, rank);
  const EngineSpec spec = engine_spec(config, split, own_groups, ranks);
  const auto engine =
      make_engine(communicator, build_graph(graph_spec(model.config.model, split.data, split.info)), spec);
  auto collectives = make_mpi_collectives(communicator, engine->backend(), {.max_count = engine->layout().count()});
  const ParameterSet set = load_model(communicator, model, *engine, *collectives);

  Evaluator evaluator(*engine, *collectives, communicator, *split.samples,
                      {.batches = {.augment = split.augment,
                                   .batch = spec.sizes.front().eval_size,
                                   .workers = std::max(split.data.workers, 1),
                                   .prefetch = split.data.prefetch,
                                   .memory = image_memory(engine->backend()),
                                   .groups = own_groups},
                       .split_groups = split.groups,
                       .limit_batches = config.data.limit_val_batches,
                       .topk = spec.topk,
                       .flip_test = split.data.flip_test,
                       .translate_test = split.data.translate_test});
  Tables tables{Confusion(split.info.classes), WorstImages(split.info.classes)};
  const bool files = !config.output_folder.empty();
  StopReason stop = StopReason::none;
  const auto stop_agreed = [&] {
    stop = std::max(stop, agree_later(communicator, {.stop = stop_reason()}).stop);
    return stop != StopReason::none;
  };
  const auto result = evaluator.run(set, stop_agreed,
                                    files ? Evaluator::Observer([&](auto batch, const float* logits) {
                                      tables.confusion.add(batch, logits);
                                      tables.worst.add(batch, logits);
                                    })
                                          : Evaluator::Observer());
  if (!result) {
    log::info("stopped on request ({}): nothing was written; start the evaluation again", name_of(stop));
    return Exit::stopped;
  }
  if (files) {
    tables.confusion.sum(communicator);
    tables.worst_images =
        tables.worst.gather(communicator, *split.samples, split.augment, spec.sizes.front().eval_input);
  }
  tell_result(communicator, config, model, split, *result, tables);
  return Exit::ok;
} catch (const AgreedError& error) {
  if (error.code == Exit::stopped) log::info("stopped on request ({}) before the evaluation", name_of(stop_reason()));
  return error.code;
}
}  // namespace convoy
