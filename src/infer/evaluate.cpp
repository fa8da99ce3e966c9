// SPDX-License-Identifier: Apache-2.0
#include "infer/evaluate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <sstream>
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
#include "infer/model_file.hpp"
#include "infer/prediction.hpp"
#include "infer/worst_images.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"

namespace convoy {
namespace {

/// Nobody can read a larger confusion matrix.
constexpr Index most_classes = 1000;

/// In a run directory each split has a folder of its own.
std::string folder_for(const EvaluateConfig& config) {
  std::error_code unknown;
  const bool is_run = std::filesystem::exists(config.output_folder + "/config.cfg", unknown);
  return is_run ? config.output_folder + "/evaluation/" + config.split : config.output_folder;
}

/// Counts over the samples of all ranks: of each class, and up to most_classes of each (label, predicted class).
class Confusion {
 public:
  explicit Confusion(Index classes);
  /// `logits` [samples][classes], host memory. Ties go to the lower class, as in the accuracy counters.
  void add(std::span<const SampleSpec> samples, const float* logits);
  /// Collective.
  void sum(Communicator& communicator);
  /// per_class.csv (class, name, samples, correct, percent) and, up to most_classes, confusion.csv (one row per label).
  /// Throws Error(data).
  void write(const std::string& folder, const std::vector<std::string>& class_names) const;

 private:
  bool has_matrix() const { return classes_ <= most_classes; }
  Index classes_;
  std::vector<std::int64_t> samples_, correct_;  ///< of each label
  std::vector<std::int64_t> counts_;             ///< [label][predicted]; empty for more classes
};

Confusion::Confusion(Index classes)
    : classes_(classes),
      samples_(static_cast<std::size_t>(classes)),
      correct_(samples_),
      counts_(has_matrix() ? static_cast<std::size_t>(classes * classes) : 0) {}

void Confusion::add(std::span<const SampleSpec> samples, const float* logits) {
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const float* row = logits + static_cast<Index>(n) * classes_;
    const Index label = samples[n].a, predicted = std::max_element(row, row + classes_) - row;
    ++samples_[static_cast<std::size_t>(label)];
    if (label == predicted) ++correct_[static_cast<std::size_t>(label)];
    if (has_matrix()) ++counts_[static_cast<std::size_t>(label * classes_ + predicted)];
  }
}

void Confusion::sum(Communicator& communicator) {
  for (std::vector<std::int64_t>* counts : {&samples_, &correct_, &counts_})
    communicator.sum(std::span<std::int64_t>(*counts), "counts of the classes");
}

void Confusion::write(const std::string& folder, const std::vector<std::string>& class_names) const {
  const auto name = [&](Index c) { return csv_field(class_name(class_names, c)); };
  std::ostringstream per_class;
  per_class << "class,name,samples,correct,percent\n";
  for (Index label = 0; label < classes_; ++label) {
    const std::int64_t samples = samples_[static_cast<std::size_t>(label)],
                       correct = correct_[static_cast<std::size_t>(label)];
    per_class << fmt::format("{},{},{},{},{:.3f}\n", label, name(label), samples, correct,
                             samples > 0 ? 100.0 * static_cast<double>(correct) / static_cast<double>(samples) : 0.0);
  }
  replace_text_file(folder + "/per_class.csv", per_class.str());
  if (!has_matrix()) {
    log::info("confusion.csv is left out: it would have {} rows and columns; per_class.csv has one line per class",
              classes_);
    return;
  }
  std::ostringstream matrix;
  matrix << "label\\predicted";
  for (Index c = 0; c < classes_; ++c) matrix << ',' << name(c);
  matrix << '\n';
  for (Index label = 0; label < classes_; ++label) {
    matrix << name(label);
    for (Index c = 0; c < classes_; ++c) matrix << ',' << counts_[static_cast<std::size_t>(label * classes_ + c)];
    matrix << '\n';
  }
  replace_text_file(folder + "/confusion.csv", matrix.str());
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
  json[fmt::format("top{}_count", record.k)] = record.count(Counter::topk);
  json[fmt::format("top{}", record.k)] = record.counters[Counter::topk];
  return json;
}

}  // namespace

Exit evaluate(Communicator& communicator, const EvaluateConfig& config) try {
  keep_time_limit(communicator, config.time_limit);
  const int ranks = communicator.size(), rank = communicator.rank();
  heed_interrupts(rank, "stopping after this batch, without a result");
  DataConfig data;
  DatasetInfo info;
  std::vector<ShapeGroup> groups;  // of the whole split
  std::unique_ptr<Dataset> samples;
  progress().doing("opening checkpoint and data set");
  ModelFile model;
  run_alike(communicator, [&] { model = open_model(communicator, config.checkpoint, config.model); });
  const std::string& path = model.found.path;
  const TrainConfig& trained = model.config;
  run_agreed(communicator, "opening the data set", [&] {
    data = data_of(config, trained);
    if (!data.synthetic && folder_of(data, config.split).empty())
      fail(Exit::usage, "no data set is given, and '{}' names none; use --data DIR (made by convoy-preprocess)", path);
  });
  info = open_shared_split(communicator, data, config.split);
  run_agreed(communicator, "opening the data set", [&] {
    data.image_size = input_side(model, data, info);
    const DataVerdict verdict = see_as_model(model.data(), info, data);
    if (rank == 0) {
      tell(verdict);
      groups = val_groups(data, info);
      if (const std::string warning = shape_warning(data, info, groups); !warning.empty()) log::warn("{}", warning);
    }
    log::info("{}", tell_input(info, augment_spec(data, info, trained.seed, Use::evaluation)));
  });
  share(communicator, groups);
  communicator.require_equal(fmt::format("{} {:016x}", path, info.digest), "checkpoint and data set");
  const Range share = EvaluationBatches::share(info.samples, ranks, rank);
  const Index largest = EvaluationBatches::share(info.samples, ranks, 0).count;
  const auto patient = patient_ranks(communicator, config.deadline);
  run_agreed(*patient, "loading the samples", [&] {
    const ActivityScope phase(Activity::data);
    progress().doing("loading the samples");
    samples = load_evaluated(data, info, share, groups, samples_memory(data, communicator.node_size()));
  });

  const AugmentSpec augment = augment_spec(data, info, trained.seed, Use::evaluation);
  const std::vector<ShapeGroup> own_groups = share_of(groups, ranks, rank);
  const EngineSpec spec{.device = config.device,
                        .sizes = {{.eval_input = input_spec(data, info, augment),
                                   .height = augment.height,
                                   .width = augment.width,
                                   .eval_size = std::min(config.batch, largest),
                                   .eval_shapes = shapes_of(own_groups)}},
                        .topk = static_cast<int>(std::min<Index>(config.topk, info.classes))};
  const auto engine = make_engine(communicator, build_graph(graph_spec(trained.model, data, info)), spec);
  auto collectives = make_mpi_collectives(communicator, engine->backend(), {.max_count = engine->layout().count()});
  const ParameterSet set = load_model(communicator, model, *engine, *collectives);

  Evaluator evaluator(*engine, *collectives, communicator, *samples,
                      {.batches = {.augment = augment,
                                   .batch = spec.sizes.front().eval_size,
                                   .workers = std::max(data.workers, 1),
                                   .prefetch = data.prefetch,
                                   .memory = image_memory(engine->backend()),
                                   .groups = own_groups},
                       .split_groups = groups,
                       .limit_batches = config.data.limit_val_batches,
                       .topk = spec.topk,
                       .flip_test = data.flip_test,
                       .translate_test = data.translate_test});
  Confusion confusion(info.classes);
  WorstImages worst(info.classes);
  const bool files = !config.output_folder.empty();
  StopReason stop = StopReason::none;
  const auto stop_agreed = [&] {
    stop = std::max(stop, agree_later(communicator, {.stop = stop_reason()}).stop);
    return stop != StopReason::none;
  };
  const auto result = evaluator.run(set, stop_agreed,
                                    files ? Evaluator::Observer([&](auto batch, const float* logits) {
                                      confusion.add(batch, logits);
                                      worst.add(batch, logits);
                                    })
                                          : Evaluator::Observer());
  if (!result) {
    log::info("stopped on request ({}): nothing was written; start the evaluation again", name_of(stop));
    return Exit::stopped;
  }
  const ValidationRecord& record = *result;
  std::string worst_images;
  if (files) {
    confusion.sum(communicator);
    worst_images = worst.gather(communicator, *samples, augment, spec.sizes.front().eval_input);
  }
  const bool may_skip = data.on_corrupt == OnCorrupt::skip;
  std::array<std::int64_t, 1> skipped{samples->skipped()};
  if (may_skip) communicator.sum(std::span<std::int64_t>(skipped), "samples that were skipped");
  run_agreed(communicator, "writing the result", [&] {
    if (rank != 0) return;
    if (record.images == 0)
      fail(Exit::data, "'{}' ({}) holds no image of a class that '{}' knows; give the set it was trained on",
           info.folder, info.split, path);
    Json json = describe(config, model, info, record);
    if (may_skip) json["skipped"] = skipped[0];
    log::info("{}: top1 {:.2f} % ({}/{}), {}loss {:.4f}", config.split, record.counters[Counter::top1],
              record.count(Counter::top1), record.images,
              record.k > 1 ? fmt::format("top{} {:.2f} %, ", record.k, record.counters[Counter::topk]) : std::string(),
              record.counters[Counter::loss]);
    log::info("{}", json.text(-1, Json::Order::sorted));  // before anything that can fail
    if (!files) return;
    const std::string folder = folder_for(config);
    make_folder(folder, "choose a writable --output-dir");
    replace_text_file(folder + "/result.json", json.text(2, Json::Order::sorted) + "\n");
    confusion.write(folder, info.class_names);
    replace_text_file(folder + "/worst.json", worst_images);
    log::info("written to '{}'", folder);
  });
  return Exit::ok;
} catch (const AgreedError& error) {
  if (error.code == Exit::stopped) log::info("stopped on request ({}) before the evaluation", name_of(stop_reason()));
  return error.code;
}
}  // namespace convoy
