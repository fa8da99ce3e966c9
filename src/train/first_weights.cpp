// SPDX-License-Identifier: Apache-2.0
#include "train/first_weights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "backend/set_layout.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/parse.hpp"
#include "core/log.hpp"
#include "engine/model_data.hpp"
#include "engine/weights.hpp"
#include "engine/whitening.hpp"
#include "interchange/fit.hpp"
#include "train/load_sets.hpp"
#include "train/residuals.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

/// The weights name their network, and it is not the run's.
[[noreturn]] void fail_other_network(const FoundWeights& found, const Graph& graph, const TrainConfig& config) {
  std::string remedy = "the --model that it was made with";
  const auto text = found.file.meta.texts.find("configuration");
  try {
    if (text != found.file.meta.texts.end()) remedy = model_words(parse_ini(text->second).model);
  } catch (const Error&) {  // of another version
  }
  fail(Exit::data, "'{}' is of {}, and this run trains {}{}; give {}", found.path, found.file.model, graph.model,
       config.said.count("model") > 0 ? "" : ", since no --model is given", remedy);
}

/// Whether the run takes the head of the weights. Says on rank 0 what differs.
Head judge_head(const TrainingJob& job, const FoundWeights& found) {
  const TrainingPhase& first = job.phases.front();
  const TrainedData own = data_of(first);
  DataVerdict verdict;
  if (found.tells() || !found.file.meta.data.class_names.empty())
    verdict = judge({found.file.meta.data, fmt::format("'{}'", found.path)},
                    {own, fmt::format("'{}'", first.splits.train.folder)}, DataUse::weights);
  if (job.communicator.rank() == 0) tell(verdict);
  return verdict.new_head || job.config.checkpoint.new_head ? Head::left_out : Head::where_it_fits;
}

/// A head of as many classes fits, whatever they are.
void warn_of_unnamed_classes(const FoundWeights& found, const TrainingJob& job) {
  if (found.tells() || !found.file.meta.data.class_names.empty()) return;
  log::warn(
      "the last layer of '{}' is kept: it has as many classes as this run ({}), but the file does not name them; if they are other classes, give --new-head",
      found.path, job.engine->plan().graph.classes);
}

/// The epsilon with which a checkpoint's weights learned; nothing: it can't be read.
std::optional<float> epsilon_of(const CheckpointMeta& meta) {
  const auto text = meta.texts.find("configuration");
  if (text == meta.texts.end()) return {};
  try {
    return norms_of(parse_ini(text->second).model).epsilon;
  } catch (const Error&) {  // of another version
    return {};
  }
}

/// Files of other programs don't tell how images became their input, and a run takes the data set's mean and deviation.
void tell_input(const FoundWeights& found, const TrainingJob& job) {
  const TrainedData own = data_of(job.phases.front()), published = published_input(job.config.model.model);
  if (found.tells() || !found.file.meta.data.mean.empty() || own.mean.size() != published.mean.size()) return;
  const std::string fact = fmt::format("'{}' does not say how its input was normalised: this run normalises with {}",
                                       found.path, normalisation_text(own));
  if (normalise_alike(own, published)) {
    log::info("{}, as torchvision's and timm's published weights learned with", fact);
    return;
  }
  const std::string text = fmt::format(
      "{}, and torchvision's and timm's published weights learned with {}; {}--rgb-mean {} --rgb-std {} keeps that",
      fact, normalisation_text(published), own.normalise == published.normalise ? "" : "--normalise channel ",
      fmt::join(published.mean, ","), fmt::join(published.std, ","));
  if (job.config.frozen.empty()) {
    log::info("{}", text);
  } else {
    log::warn("{} (layers that --freeze keeps can't adapt to another input)", text);
  }
}

void warn_of_epsilon(const FoundWeights& found, Library library, const GraphSpec& model) {
  const float own = norms_of(model).epsilon;
  if (found.tells()) {
    const std::optional<float> theirs = epsilon_of(found.file.meta);
    if (theirs && *theirs != own)
      log::warn("the batch norms of '{}' learned with an epsilon of {}, not {}; give --norm-epsilon {} for its weights",
                found.path, *theirs, own, *theirs);
    return;
  }
  const float theirs = norm_epsilon_of(library, model.model);
  if (!model.layers.empty() || theirs == own) return;
  log::warn("the batch norms of {} {} have an epsilon of {}, not {}; give --norm-epsilon {} for its weights",
            library == Library::timm ? "timm's" : "the published", model.model, theirs, own, theirs);
}

/// Names of tensors that the weights lack, since they start anew for the classes of this run.
using Unread = std::vector<std::string>;

bool contains(const Unread& unread, const Parameter& row) {
  return std::any_of(unread.begin(), unread.end(), [&](auto& name) { return name.ends_with("/" + row.name); });
}

/// What starts anew: auxiliary classifiers that the file has not, and layers of other classes. Warns of a last layer
/// that is kept.
void tell_unread(const Unread& unread, const FoundWeights& found, const TrainingJob& job) {
  const Plan& plan = job.engine->plan();
  const std::vector<bool> of_logits = nodes_of_logits(plan.graph);
  const auto is_unread = [&](const Parameter& row) { return contains(unread, row); };
  const auto is_auxiliary = [&](const Parameter& row) { return !of_logits[static_cast<std::size_t>(row.node)]; };
  const auto& rows = plan.table.rows;
  const bool no_heads = std::any_of(rows.begin(), rows.end(), [&](const Parameter& row) {
    return is_auxiliary(row) && !row.makes_classes && is_unread(row);
  });
  Unread of_classes;
  for (const Parameter& row : rows)
    if (row.makes_classes && is_unread(row) && !(no_heads && is_auxiliary(row)))
      of_classes.push_back("/parameters/" + row.name);
  if (no_heads) log::info("'{}' has no auxiliary classifiers, so they start anew", found.path);
  if (!of_classes.empty())
    log::info("a new head for the classes of this run: {} start anew", fmt::join(of_classes, ", "));
  else if (job.communicator.rank() == 0)
    warn_of_unnamed_classes(found, job);
}

/// Collective. Reads --weights into `block`, which is laid out as a parameter set.
Unread read_weights(TrainingJob& job, std::vector<float>& block) {
  const Plan& plan = job.engine->plan();
  const SetLayout& layout = job.engine->layout();
  const FoundWeights found = open_weights(job.communicator, job.config.checkpoint.weights);
  if (found.tells() && found.file.model != plan.graph.model) fail_other_network(found, plan.graph, job.config);
  const Head head = judge_head(job, found);
  if (job.communicator.rank() == 0) tell_input(found, job);
  LoadedWeights loaded = load_weights(job.communicator, found, plan, layout, head);
  if (job.communicator.rank() == 0) warn_of_epsilon(found, loaded.origin, job.config.model);
  for (const StoredTensor& tensor : stored_tensors(plan, layout)) {
    const bool weights = tensor.name.starts_with("/parameters/") || tensor.name.starts_with("/statistics/");
    const auto is_it = [&](const std::string& name) { return name.ends_with(tensor.name); };
    if (!weights || std::any_of(loaded.unread.begin(), loaded.unread.end(), is_it)) continue;
    const Range& range = tensor.range;
    std::copy_n(loaded.block.begin() + range.begin, range.count, block.begin() + range.begin);
  }
  for (const Parameter& row : plan.table.rows)
    if (!row.trainable && contains(loaded.unread, row))
      fail(
          Exit::usage,
          "'{}' starts anew for the classes of this run, and --freeze would keep its first values; leave it out of --freeze",
          row.name);
  tell_unread(loaded.unread, found, job);
  return std::move(loaded.unread);
}

}  // namespace

void load_first_weights(TrainingJob& job) {
  std::vector<float> block = job.engine->initial_set(job.config.seed);
  const bool has_weights = !job.config.checkpoint.weights.empty();
  const Unread unread = has_weights ? read_weights(job, block) : Unread();
  const TrainingPhase& begin = job.phases.front();
  whiten_first_layers(
      job.communicator, begin.config.data, begin.splits.train, begin.augment, job.engine->plan(),
      [&](const Parameter& row) { return !has_weights || contains(unread, row); },
      block.data() + job.engine->layout().values.begin);
  load_sets(job, block);
  load_average(job, block);
  load_outer(job, block);
  load_residuals(job, nullptr);
}

}  // namespace convoy
