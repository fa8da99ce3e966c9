// SPDX-License-Identifier: Apache-2.0
#include "config/phases.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "config/options.hpp"
#include "core/errors.hpp"
#include "options/ranges.hpp"

namespace convoy {
namespace {

constexpr double largest = 16384;

/// All that phases change of the data.
auto data_of(const PhaseConfig& phase) {
  return std::tie(phase.image_size, phase.batch, phase.global_batch, phase.min_area, phase.folder, phase.rectangular);
}

TrainConfig changed_by(const TrainConfig& config, const PhaseConfig& phase) {
  TrainConfig changed = config;
  if (phase.image_size > 0) changed.data.image_size = phase.image_size;
  if (phase.min_area > 0) changed.data.augment.min_area = phase.min_area;
  if (phase.rectangular != PhaseConfig::Switch::unchanged)
    changed.data.rectangular = phase.rectangular == PhaseConfig::Switch::on;
  if (!phase.folder.empty()) {
    changed.data.folder = phase.folder;
    changed.data.train_folder.clear();
    changed.data.val_folder.clear();
  }
  if (phase.batch > 0) {
    changed.batch = phase.batch;
    changed.batch_given = true;
    changed.global_batch = 0;
  }
  if (phase.global_batch > 0) {
    changed.global_batch = phase.global_batch;
    changed.batch_given = false;
  }
  return changed;
}

}  // namespace

std::vector<OptionGroup> options_of(PhaseConfig& phase) {
  return {{"Phase",
           {number_option("image-size", "PIXELS", phase.image_size, from_to(1, largest), "height and width")
                .also({"size", "sz"}),
            number_option("batch-size", "N", phase.batch, from_to(1, 1 << 24), "images per replica").also({"bs"}),
            number_option("global-batch", "N", phase.global_batch, from_to(1, Index{1} << 40), "images per step"),
            number_option("min-random-area", "F", phase.min_area, {.low = 0, .high = 1, .low_excluded = true},
                          "least area of resized crops")
                .also({"min-scale"}),
            choice_option<PhaseConfig::Switch>("rectangular-validation", phase.rectangular,
                                               {{"", PhaseConfig::Switch::unchanged},
                                                {"true", PhaseConfig::Switch::on},
                                                {"false", PhaseConfig::Switch::off}},
                                               "validation keeps the shape of images")
                .also({"rect-val"}),
            text_option("data", "DIR", phase.folder, "data set")}}};
}

const std::vector<std::string>& phase_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all = {"epochs", "lr"};
    PhaseConfig phase;
    for (const OptionGroup& group : options_of(phase)) {
      for (const Option& option : group.options) {
        all.push_back(option.name);
        all.insert(all.end(), option.aliases.begin(), option.aliases.end());
      }
    }
    return all;
  }();
  return keys;
}

DataConfig validation_data(DataConfig data) {
  if (data.val_image_size > 0) data.image_size = data.val_image_size;
  if (data.val_resize > 0) data.augment.resize = data.val_resize;
  data.val_image_size = data.val_resize = 0;
  return data;
}

std::vector<std::pair<Index, TrainConfig>> data_phases(const TrainConfig& config) {
  std::vector<std::pair<Index, TrainConfig>> legs;
  const PhaseConfig nothing;
  const PhaseConfig* last = &nothing;
  for (const PhaseConfig& phase : config.phases) {
    if (data_of(phase) == data_of(*last)) continue;
    const double begin = phase.rate.begin_epoch;
    if (legs.empty() && begin > 0) legs.emplace_back(0, config);
    if (begin != std::floor(begin))
      fail(
          Exit::usage,
          "[phase.{}] begins at epoch {} and changes data, image size or batch; such a phase must begin at the start of an epoch",
          phase.number, begin);
    legs.emplace_back(static_cast<Index>(begin), changed_by(config, phase));
    last = &phase;
  }
  if (legs.empty()) legs.emplace_back(0, config);
  return legs;
}

namespace {

/// `0.1` or `0.1:0.4`.
std::pair<double, double> read_span(const Assignment& given, bool both, const Bounds& bounds, const char* allowed) {
  const auto colon = given.value.find(':');
  try {
    if (colon == std::string::npos) {
      if (both) throw BadValue("has no ':'");
      const double value = read_number(given.value, bounds);
      return {value, value};
    }
    return {read_number(given.value.substr(0, colon), bounds), read_number(given.value.substr(colon + 1), bounds)};
  } catch (const BadValue& e) {
    fail(Exit::usage, "{} ('{}' {}); allowed: {}", given.origin, given.value, e.what(), allowed);
  }
}

/// All but epochs and lr.
void set_fields(PhaseConfig& phase, const std::map<std::string, Assignment>& fields) {
  for (const auto& group : options_of(phase)) {
    for (const Option& option : group.options) {
      for (const auto& [name, given] : fields) {
        const bool alias = std::find(option.aliases.begin(), option.aliases.end(), name) != option.aliases.end();
        if (name != option.name && !alias) continue;
        set_option(option, given);
      }
    }
  }
}

}  // namespace

void fill_phases(TrainConfig& config, const std::vector<Assignment>& given, const std::set<std::string>& names) {
  std::map<int, std::map<std::string, Assignment>> phases;
  for (const auto& assignment : given) phases[assignment.phase][assignment.name] = assignment;
  for (const auto& [number, fields] : phases) {
    if (fields.count("epochs") == 0) {
      fail(Exit::usage, "[phase.{}] has no 'epochs' ({}); a phase has 'epochs = BEGIN:END' and what it changes", number,
           fields.begin()->second.origin);
    }
    PhaseConfig phase{.number = number, .rate = {}, .has_rate = fields.count("lr") > 0};
    std::tie(phase.rate.begin_epoch, phase.rate.end_epoch) =
        read_span(fields.at("epochs"), true, from_to(0, most_epochs), "BEGIN:END, epochs from 0 to 10^9");
    if (phase.has_rate)
      std::tie(phase.rate.from, phase.rate.to) =
          read_span(fields.at("lr"), false, at_least(0), "RATE or FROM:TO, >= 0");
    set_fields(phase, fields);
    config.phases.push_back(phase);
  }
  if (config.phases.empty()) return;
  const auto rates = std::count_if(config.phases.begin(), config.phases.end(), [](auto& p) { return p.has_rate; });
  if (rates > 0 && names.count("lr-schedule") == 0) config.optimiser.schedule.decay = Decay::phases;
}

}  // namespace convoy
