// SPDX-License-Identifier: Apache-2.0
#include "train/data.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "core/log.hpp"

namespace convoy {

std::string folder_of(const DataConfig& config, const std::string& split) {
  const std::string& own = split == "train" ? config.train_folder : config.val_folder;
  return own.empty() ? config.folder : own;
}

bool split_exists(const DataConfig& config, const std::string& split) {
  return config.synthetic || has_split(folder_of(config, split), split);
}

DatasetInfo open_split(const DataConfig& config, const std::string& split) {
  if (config.synthetic) return synthetic_info(config.synthetic_spec, split);
  return read_dataset_info(folder_of(config, split), split);
}

std::unique_ptr<Dataset> load_split(const DataConfig& config, const DatasetInfo& info, Range range) {
  if (config.synthetic) return std::make_unique<Dataset>(config.synthetic_spec, info, range);
  auto samples = std::make_unique<Dataset>(info, range, std::max(config.workers, 1), config.on_corrupt);
  if (samples->skipped() > 0) {
    log::warn("{} damaged samples of '{}' ({}) were skipped: their neighbours stand in for them", samples->skipped(),
              info.folder, info.split);
  }
  return samples;
}

AugmentSpec augment_spec(const DataConfig& config, const DatasetInfo& info, std::uint64_t seed, Use use) {
  const Index size = config.image_size;
  AugmentSpec spec = config.augment;
  spec.source_height = info.height;
  spec.source_width = info.width;
  spec.channels = info.channels;
  spec.height = size > 0 ? size : info.height;
  spec.width = size > 0 ? size : info.width;
  spec.train = use == Use::training;
  spec.seed = seed;
  check_augment(spec);
  return spec;
}

int keep_resident(Backend& backend, const Dataset& dataset) {
  return backend.keep_resident(dataset.images(), dataset.range().count, dataset.info().image_bytes());
}

InputSpec input_spec(const DataConfig& config, const DatasetInfo& info) {
  InputSpec spec{.height = info.height, .width = info.width, .channels = info.channels, .normalise = config.normalise};
  const auto& mean = config.rgb_mean.empty() ? info.mean : config.rgb_mean;
  const auto& std = config.rgb_std.empty() ? info.std : config.rgb_std;
  const auto channels = static_cast<std::size_t>(info.channels);
  if (channels > spec.mean.size()) {
    fail(Exit::data, "data set '{}' has {} channels; at most {} are supported", info.folder, channels,
         spec.mean.size());
  }
  if (mean.size() != channels || std.size() != channels) {
    fail(Exit::usage, "--rgb-mean has {} and --rgb-std {} values, but the images of '{}' have {} channels", mean.size(),
         std.size(), info.folder, channels);
  }
  for (std::size_t c = 0; c < channels; ++c) {
    if (!(std[c] > 0)) fail(Exit::data, "the standard deviation of channel {} is {}; give --rgb-std", c, std[c]);
    spec.mean.at(c) = static_cast<float>(mean[c]);
    spec.std.at(c) = static_cast<float>(std[c]);
  }
  if (config.normalise == InputSpec::Normalise::mean_image) {
    if (info.mean_image.empty()) {
      fail(Exit::data, "'{}' has no mean image; prepare it with --mean-image, or use --normalise channel", info.folder);
    }
    spec.mean_image = info.mean_image;
  }
  return spec;
}

GraphSpec graph_spec(const GraphSpec& model, const DataConfig& config, const DatasetInfo& info) {
  GraphSpec spec = model;
  spec.classes = info.classes;
  spec.channels = info.channels;
  spec.image_size = config.image_size > 0 ? config.image_size : info.height;
  return spec;
}

}  // namespace convoy
