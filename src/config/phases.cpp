// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <tuple>

#include "config/options.hpp"
#include "core/errors.hpp"

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

}  // namespace convoy
