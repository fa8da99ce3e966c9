// SPDX-License-Identifier: Apache-2.0
#include "engine/model_data.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "engine/data.hpp"
#include "network/models.hpp"

namespace convoy {

TrainedData trained_data(const DataConfig& config, const DatasetInfo& train, std::uint64_t val_digest) {
  const AugmentSpec shown = augment_spec(validation_data(config), train, 0, Use::evaluation);
  const Index resized = shown.short_side();
  const bool mean_image = config.normalise == InputSpec::Normalise::mean_image;
  return {.class_names = train.class_names,
          .mean = config.rgb_mean.empty() ? train.mean : config.rgb_mean,
          .std = config.rgb_std.empty() ? train.std : config.rgb_std,
          .height = train.height,
          .width = train.width,
          .train_digest = train.digest,
          .val_digest = val_digest,
          .mean_image = mean_image ? hash_bytes(train.mean_image.data(), train.mean_image.size() * sizeof(float)) : 0,
          .normalise = config.normalise,
          .input_height = shown.height,
          .input_width = shown.width,
          .short_side = resized > 0 ? resized : std::min(train.height, train.width)};
}

TrainedData published_input(const std::string& model) {
  TrainedData input{
      .mean = {123.675, 116.28, 103.53}, .std = {58.395, 57.12, 57.375}, .normalise = InputSpec::Normalise::channel};
  if (takes_centred_input(model)) input.mean = input.std = {127.5, 127.5, 127.5};
  return input;
}

void tell(const DataVerdict& verdict) {
  for (const std::string& note : verdict.notes) log::info("{}", note);
  for (const std::string& warning : verdict.warnings) log::warn("{}", warning);
}

DataVerdict see_as_model(const NamedData& model, DatasetInfo& set, DataConfig& config) {
  const TrainedData& learned = model.data;
  TrainedData own = trained_data(config, set, 0);
  own.mean = set.mean;  // of as many channels as its images have, whatever --rgb-mean says
  DataVerdict verdict = judge(model, {own, fmt::format("'{}' ({})", set.folder, set.split)}, DataUse::evaluation);
  if (!learned.class_names.empty()) {
    set.labels_as = verdict.labels;
    // The same names stay: of those that are no UTF-8 a checkpoint keeps a part.
    if (!verdict.labels.empty() || set.class_names.empty()) set.class_names = learned.class_names;
    set.classes = static_cast<Index>(learned.class_names.size());
  }
  if (!learned.mean.empty()) {
    set.mean = learned.mean;
    set.std = learned.std;
  }
  // Older versions tell the size of stored pixels only, which is the input's unless --image-size says another.
  const bool told = learned.short_side > 0;
  const ImageSize input{told ? learned.input_height : learned.height, told ? learned.input_width : learned.width};
  if (config.image_size == 0 && input.height > 0) {
    if (input.height == input.width) {
      config.image_size = input.height;
    } else if (set.height != input.height || set.width != input.width) {
      fail(Exit::data, "{} takes input of {} x {} pixels, and '{}' holds {}; prepare the set in that size", model.name,
           input.height, input.width, set.folder, tell_images(set));
    }
  }
  const Index side = told ? learned.short_side : std::min(learned.height, learned.width);
  // Another --image-size has a short side of its own.
  const bool own_input = told && config.image_size != 0 && config.image_size != input.height;
  const bool is_free = config.augment.resize == 0 && !own_input && side >= input.height;
  if (is_free && trained_data(config, set, 0).short_side != side) config.augment.resize = side;
  return verdict;
}

DatasetInfo data_of_model(const NamedData& model) {
  const TrainedData& learned = model.data;
  if (learned.class_names.empty() || learned.mean.empty()) {
    fail(
        Exit::data,
        "checkpoint {} doesn't tell the classes and the normalisation of its data (an older version wrote it); predict a prepared data set, or train one more step with --resume",
        model.name);
  }
  DatasetInfo info;
  info.folder = model.name;
  info.encoding = "jpeg";
  info.class_names = learned.class_names;
  info.classes = static_cast<Index>(learned.class_names.size());
  info.mean = learned.mean;
  info.std = learned.std;
  info.channels = static_cast<Index>(learned.mean.size());
  info.height = learned.height;
  info.width = learned.width;
  return info;
}

}  // namespace convoy
