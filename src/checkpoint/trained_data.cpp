// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/trained_data.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/text.hpp"

namespace convoy {
namespace {
using Names = std::vector<std::string>;
using Normalise = InputSpec::Normalise;

constexpr std::array<std::pair<Normalise, const char*>, 3> kinds{
    {{Normalise::channel, "channel"}, {Normalise::mean_image, "mean_image"}, {Normalise::per_image, "per_image"}}};

/// As JSON keeps them in a checkpoint: what is no UTF-8 has been replaced.
Names as_stored(const Names& names) { return Json::parse(Json(names).text(-1, Json::Order::as_written)).as<Names>(); }

std::map<std::string, std::int32_t> numbers_of(const Names& names) {
  std::map<std::string, std::int32_t> numbers;
  for (const std::string& name : names) numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
  return numbers;
}

/// `'cat', 'dog' and 7 more`.
std::string list(const Names& names) {
  constexpr std::size_t shown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", one_line(names[i]));
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

Names missing_in(const std::map<std::string, std::int32_t>& others, const Names& names) {
  Names missing;
  std::copy_if(names.begin(), names.end(), std::back_inserter(missing),
               [&](const std::string& name) { return !others.contains(name); });
  return missing;
}

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double tolerance = 1e-6;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x)); });
}

std::string input_of(const TrainedData& data) {
  return fmt::format("{} x {} pixels of a short side of {}", data.input_height, data.input_width, data.short_side);
}

/// What a checkpoint of an older version doesn't tell; empty: it tells everything that this use compares.
std::string what_is_unknown(const TrainedData& model, DataUse use) {
  Names unknown;
  if (model.class_names.empty()) unknown.emplace_back("classes");
  if (model.mean.empty()) {
    unknown.emplace_back("normalisation");
  } else if (!model.normalise && use != DataUse::evaluation) {
    unknown.emplace_back("kind of normalisation");
  }
  if (model.train_digest == 0) unknown.emplace_back("samples");
  if (model.short_side == 0) unknown.emplace_back("input size");
  return fmt::format("{}", fmt::join(unknown, ", "));
}

bool differs(std::uint64_t model, std::uint64_t set) { return model != 0 && model != set; }

void judge_evaluation(const NamedData& model, const NamedData& set, const ClassMatch& classes, DataVerdict& verdict) {
  if (!classes.difference.empty()) {
    fail(
        Exit::data,
        "{} learned other classes than {} holds ({}); give the set it was trained on, or prepare this one with the same class names",
        model.name, set.name, classes.difference);
  }
  if (!model.data.mean.empty() && model.data.mean.size() != set.data.mean.size()) {
    fail(Exit::data,
         "{} takes images of {} channels, and {} holds images of {}; prepare the set with --color rgb (3) or grey (1)",
         model.name, model.data.mean.size(), set.name, set.data.mean.size());
  }
  if (differs(model.data.mean_image, set.data.mean_image)) {
    fail(Exit::data,
         "{} subtracts the mean image of its training set, and {} has another or none; give a set prepared with it",
         model.name, set.name);
  }
  verdict.labels = classes.labels;
  if (verdict.labels.empty()) return;
  Names left_out;
  for (std::size_t c = 0; c < verdict.labels.size(); ++c)
    if (verdict.labels[c] < 0) left_out.push_back(set.data.class_names[c]);
  verdict.notes.push_back(fmt::format("classes of {} are matched by name with those of {}: {} of {}", set.name,
                                      model.name, verdict.labels.size() - left_out.size(),
                                      model.data.class_names.size()));
  if (!left_out.empty())
    verdict.warnings.push_back(
        fmt::format("images of classes that {} doesn't know are left out: {}", model.name, list(left_out)));
}

std::string what_was_learned(const NamedData& model, const NamedData& set, const ClassMatch& classes) {
  if (!classes.difference.empty()) return classes.difference;
  const Names &then = model.data.class_names, now = as_stored(set.data.class_names);
  if (then.size() != now.size()) return fmt::format("{} classes then, {} now", then.size(), now.size());
  const auto at = std::mismatch(then.begin(), then.end(), now.begin());
  return fmt::format("class {} is '{}' then and '{}' now", at.first - then.begin(), one_line(*at.first),
                     one_line(*at.second));
}

void judge_resume(const NamedData& model, const NamedData& set, DataUse use, DataVerdict& verdict) {
  if (differs(model.data.train_digest, set.data.train_digest)) {
    const std::string digests =
        fmt::format("digest {:016x} then, {:016x} now", model.data.train_digest, set.data.train_digest);
    if (use == DataUse::mid_epoch) {
      fail(
          Exit::data,
          "{} stands in the middle of an epoch of other samples than {} holds ({}); prepare the set as it was, name a checkpoint of the end of an epoch with --resume, or start anew from the weights with --weights",
          model.name, set.name, digests);
    }
    verdict.warnings.push_back(
        fmt::format("the samples of {} are not those that {} was trained on ({}): it continues with the new ones",
                    set.name, model.name, digests));
  }
  verdict.new_best = set.data.val_digest != 0 && differs(model.data.val_digest, set.data.val_digest);
  if (verdict.new_best)
    verdict.warnings.push_back(
        fmt::format("the best accuracy so far is of another val split ({:016x} then, {:016x} now): best.h5 starts anew",
                    model.data.val_digest, set.data.val_digest));
}

/// As --normalise takes it.
std::string option_word(Normalise normalise) {
  std::string word = name_of(normalise);
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

/// Of a network that trains on.
std::vector<std::string> changes_of_input(const NamedData& model, const NamedData& set) {
  const TrainedData &then = model.data, &now = set.data;
  std::vector<std::string> changes;
  if (!normalise_alike(then, now)) {
    const bool other_kind = then.normalise && now.normalise && *then.normalise != *now.normalise;
    changes.push_back(fmt::format("input is normalised with {}, in {} it was {}; {} what it learned with",
                                  normalisation_text(now), model.name, normalisation_text(then),
                                  other_kind ? fmt::format("--normalise {} keeps", option_word(*then.normalise))
                                             : "--rgb-mean and --rgb-std keep"));
  }
  if (then.short_side != 0 && input_of(then) != input_of(now))
    changes.push_back(fmt::format("input is {}, in {} it was {}", input_of(now), model.name, input_of(then)));
  return changes;
}

}  // namespace

std::string name_of(Normalise normalise) {
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == normalise; });
  require(found != kinds.end(), "a kind of normalisation without a name");
  return found->second;
}

std::optional<Normalise> normalise_named(std::string_view name) {
  for (const auto& [kind, word] : kinds)
    if (name == word) return kind;
  return std::nullopt;
}

std::string normalisation_text(const TrainedData& data) {
  if (data.normalise == Normalise::per_image) return "each image's own mean and deviation";
  return fmt::format("mean {:.2f}, deviation {:.2f}{}", fmt::join(data.mean, " "), fmt::join(data.std, " "),
                     data.mean_image == 0 ? "" : fmt::format(", mean image {:016x}", data.mean_image));
}

bool normalise_alike(const TrainedData& a, const TrainedData& b) {
  if (a.mean.empty() || b.mean.empty()) return true;
  if (a.normalise && b.normalise && *a.normalise != *b.normalise) return false;
  if (a.normalise == Normalise::per_image && a.normalise == b.normalise) return a.mean.size() == b.mean.size();
  return near(a.mean, b.mean) && near(a.std, b.std) && !differs(a.mean_image, b.mean_image);
}

ClassMatch match_classes(const Names& model, const Names& set) {
  if (model.empty() || set.empty() || model == set) return {};
  const Names names = as_stored(set);
  if (model == names) return {};
  const auto known = numbers_of(model), own = numbers_of(names);
  const Names only_model = missing_in(own, model), only_set = missing_in(known, names);
  ClassMatch match;
  if (!only_model.empty() && !only_set.empty()) {
    match.difference = fmt::format("only the model has {}, only the set has {}", list(only_model), list(only_set));
  } else if (known.size() != model.size() || own.size() != names.size()) {
    match.difference = "several classes have one name";
  } else {
    for (const std::string& name : names) {
      const auto number = known.find(name);
      match.labels.push_back(number == known.end() ? -1 : number->second);
    }
  }
  return match;
}

DataVerdict judge(const NamedData& model, const NamedData& set, DataUse use) {
  DataVerdict verdict;
  if (const std::string unknown = what_is_unknown(model.data, use); !unknown.empty())
    verdict.notes.push_back(
        fmt::format("{} doesn't tell its data's {} (an older version or another program wrote it): not compared",
                    model.name, unknown));
  const ClassMatch classes = match_classes(model.data.class_names, set.data.class_names);
  const bool same = classes.labels.empty() && classes.difference.empty();
  switch (use) {
    case DataUse::evaluation:
      judge_evaluation(model, set, classes, verdict);
      return verdict;
    case DataUse::weights:
      verdict.new_head = !same;
      if (!same)
        verdict.notes.push_back(fmt::format("{} learned other classes than {} holds ({}): a new head starts",
                                            model.name, set.name, what_was_learned(model, set, classes)));
      for (std::string& change : changes_of_input(model, set)) verdict.notes.push_back(std::move(change));
      return verdict;
    case DataUse::epoch_border:
    case DataUse::mid_epoch:
      if (!same) {
        fail(
            Exit::data,
            "{} learned other classes than {} holds ({}); give the set it was trained on, or start anew from its weights with --weights",
            model.name, set.name, what_was_learned(model, set, classes));
      }
      judge_resume(model, set, use, verdict);
      for (std::string& change : changes_of_input(model, set)) verdict.warnings.push_back(std::move(change));
      return verdict;
  }
  return verdict;
}

}  // namespace convoy
