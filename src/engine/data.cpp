// SPDX-License-Identifier: Apache-2.0
#include "engine/data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/host_facts.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "data/loader.hpp"
#include "data/sample_table.hpp"
#include "data/stage.hpp"
#include "network/whitening.hpp"

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

std::string tell_images(const DatasetInfo& info) {
  if (info.height == 0) return fmt::format("{} of any size ({})", counted(info.samples, "image"), info.encoding);
  return fmt::format("{} of {}x{}x{}", counted(info.samples, "image"), info.height, info.width, info.channels);
}

std::string tell_input(const DatasetInfo& info, const AugmentSpec& augment) {
  return fmt::format("{} '{}': {} in {}; {}", info.split, info.folder, tell_images(info),
                     counted(info.classes, "class"), describe(augment));
}

Index samples_bytes(const DatasetInfo& info, Range range) {
  if (info.encoding == "raw") return range.count * info.image_bytes();
  double bytes = 0;
  for (const PartitionInfo& part : info.partitions) {
    const Index begin = std::max(part.samples.begin, range.begin), end = std::min(part.samples.end(), range.end());
    const double share = static_cast<double>(std::max<Index>(end - begin, 0)) / static_cast<double>(part.samples.count);
    bytes += share * static_cast<double>(part.stored_bytes);
  }
  return static_cast<Index>(bytes);
}

namespace {

bool keeps(const DataConfig& config, const DatasetInfo& info, Range range, Index memory_bytes) {
  if (config.synthetic || config.cache == DataCache::ram) return true;
  return config.cache == DataCache::automatic && samples_bytes(info, range) <= memory_bytes;
}

/// What is loaded for an evaluation by groups: samples that a rank takes lie all over the split.
struct Evaluated {
  DataConfig config;
  Range range;
};
Evaluated evaluated(const DataConfig& config, const DatasetInfo& info, Range share,
                    const std::vector<ShapeGroup>& groups) {
  Evaluated result{config, groups.empty() ? share : Range{0, info.samples}};
  if (!groups.empty() && config.cache == DataCache::automatic) result.config.cache = DataCache::stream;
  return result;
}

}  // namespace

Index kept_bytes(const DataConfig& config, const DatasetInfo& info, Range range, Index memory_bytes) {
  return keeps(config, info, range, memory_bytes) ? samples_bytes(info, range) : 0;
}

Index samples_memory(const DataConfig& config, int node_size) {
  constexpr double mega = 1e6;
  if (config.memory_mb > 0) return static_cast<Index>(config.memory_mb * mega);
  const double available = available_memory();
  if (available <= 0) return std::numeric_limits<Index>::max();
  return static_cast<Index>(available) / 2 / std::max(node_size, 1);
}

std::unique_ptr<Dataset> load_split(const DataConfig& config, const DatasetInfo& info, Range range,
                                    Index memory_bytes) {
  if (config.synthetic) return std::make_unique<Dataset>(config.synthetic_spec, info, range);
  if (config.cache == DataCache::ram && config.memory_mb > 0 && samples_bytes(info, range) > memory_bytes) {
    fail(
        Exit::usage,
        "--data-cache ram needs {:.1f} MB for the samples of a rank, --data-memory allows {}; use more ranks, or --data-cache stream",
        static_cast<double>(samples_bytes(info, range)) / 1e6, config.memory_mb);
  }
  DatasetInfo from = info;
  if (config.cache == DataCache::stage) stage_partitions(from, range, stage_folder(config.stage_folder));
  auto samples = std::make_unique<Dataset>(
      std::move(from), range,
      ReadSpec{.threads = std::max(config.workers, 1),
               .on_corrupt = config.on_corrupt,
               .keep = keeps(config, info, range, memory_bytes) ? Keep::memory : Keep::files});
  if (samples->skipped() > 0) {
    const bool one = samples->skipped() == 1;
    log::warn("{} of '{}' ({}) {} skipped: {}", counted(samples->skipped(), "damaged sample"), info.folder, info.split,
              one ? "was" : "were", one ? "its neighbour stands in for it" : "their neighbours stand in for them");
  }
  return samples;
}

std::vector<ShapeGroup> val_groups(const DataConfig& config, const DatasetInfo& info) {
  if (!config.rectangular) return {};
  return group_by_shape(info, input_size(config, info).height);
}

std::string shape_warning(const DataConfig& config, const DatasetInfo& info, const std::vector<ShapeGroup>& groups) {
  if (!config.rectangular || !groups.empty()) return "";
  return fmt::format(
      "'{}' ({}) holds pixels of one size, so --rectangular-validation changes nothing; prepare the set with --encoding jpeg",
      info.folder, info.split);
}

std::vector<std::int32_t> labels_of(const DataConfig& config, const DatasetInfo& info, Range range) {
  std::vector<std::int32_t> labels;
  if (config.synthetic) {
    std::vector<std::uint8_t> image(static_cast<std::size_t>(info.image_bytes()));
    for (Index i = range.begin; i < range.end(); ++i)
      labels.push_back(info.label_of(synthetic_sample(config.synthetic_spec, i, image.data())));
    return labels;
  }
  return read_labels(info, range);
}

std::unique_ptr<Dataset> load_evaluated(const DataConfig& config, const DatasetInfo& info, Range share,
                                        const std::vector<ShapeGroup>& groups, Index memory_bytes) {
  const Evaluated of = evaluated(config, info, share, groups);
  return load_split(of.config, info, of.range, memory_bytes);
}

Index kept_evaluated_bytes(const DataConfig& config, const DatasetInfo& info, Range share,
                           const std::vector<ShapeGroup>& groups, Index memory_bytes) {
  const Evaluated of = evaluated(config, info, share, groups);
  return kept_bytes(of.config, info, of.range, memory_bytes);
}

ImageSize input_size(const DataConfig& config, const DatasetInfo& info) {
  constexpr Index usual = 224;
  if (config.image_size > 0) return {config.image_size, config.image_size};
  if (info.encoding == "raw") return {info.height, info.width};
  return {usual, usual};
}

namespace {

/// From the covariance of the set's pixels.
ColourComponents colours_of(const DatasetInfo& info) {
  constexpr std::size_t channels = 3;
  constexpr double white = 255;
  if (info.covariance.empty())
    fail(Exit::data,
         "'{}' has no covariance of its colours, which --pca-noise-source data needs (an earlier version prepared it); "
         "prepare it again with --overwrite, or use --pca-noise-source imagenet",
         info.folder);
  const Eigenpairs pairs = eigenpairs_of(info.covariance, Index{channels});
  ColourComponents colours{};
  for (std::size_t i = 0; i < channels; ++i) {
    colours.eigenvalues[i] = std::max(pairs.values[i], 0.0) / (white * white);
    for (std::size_t c = 0; c < channels; ++c) colours.components[c][i] = pairs.vectors[i][c];
  }
  return colours;
}

}  // namespace

AugmentSpec augment_spec(const DataConfig& config, const DatasetInfo& info, std::uint64_t seed, Use use) {
  const ImageSize size = input_size(config, info);
  AugmentSpec spec = config.augment;
  spec.stored = info.encoding == "raw" ? Stored::pixels : Stored::files;
  spec.source_height = info.height;
  spec.source_width = info.width;
  spec.channels = info.channels;
  spec.height = size.height;
  spec.width = size.width;
  spec.train = use == Use::training;
  spec.seed = seed;
  check_augment(spec);
  const ColourSpec& colour = spec.colour;
  if (spec.train && colour.lighting > 0 && colour.source == ColourSource::data)
    spec.colour.components = colours_of(info);
  return spec;
}

int keep_resident(Backend& backend, const Dataset& dataset, const AugmentSpec& augment) {
  if (!can_be_resident(dataset, augment)) return -1;
  return backend.keep_resident(dataset.images(), dataset.range().count, dataset.info().image_bytes());
}

ImageMemory image_memory(Backend& backend) {
  return [&backend](std::size_t bytes) {
    return reinterpret_cast<std::uint8_t*>(backend.allocate_host(static_cast<Index>((bytes + 3) / 4)));
  };
}

void require_mean_per_channel(const DataConfig& config, const DatasetInfo& info) {
  const auto channels = static_cast<std::size_t>(info.channels);
  const std::size_t means = config.rgb_mean.empty() ? info.mean.size() : config.rgb_mean.size(),
                    deviations = config.rgb_std.empty() ? info.std.size() : config.rgb_std.size();
  if (means != channels || deviations != channels)
    fail(
        Exit::usage,
        "the input would be normalised with {} and {}, but the images of '{}' have {}; give --rgb-mean and --rgb-std one value "
        "per channel",
        counted(means, "mean"), counted(deviations, "standard deviation"), info.folder, counted(channels, "channel"));
}

InputSpec input_spec(const DataConfig& config, const DatasetInfo& info, const AugmentSpec& augment) {
  const bool made = augment.on_host(), reflects = !augment.train && config.translate_test > 0;
  InputSpec spec{.height = made ? augment.height : info.height,
                 .width = made ? augment.width : info.width,
                 .channels = info.channels,
                 .normalise = config.normalise,
                 .padding = reflects ? Padding::reflect : config.augment.padding};
  const auto& mean = config.rgb_mean.empty() ? info.mean : config.rgb_mean;
  const auto& std = config.rgb_std.empty() ? info.std : config.rgb_std;
  const auto channels = static_cast<std::size_t>(info.channels);
  if (channels > spec.mean.size()) {
    fail(Exit::data, "data set '{}' has {} channels; at most {} are supported", info.folder, channels,
         spec.mean.size());
  }
  require_mean_per_channel(config, info);
  for (std::size_t c = 0; c < channels; ++c) {
    if (!(std[c] > 0)) fail(Exit::data, "the standard deviation of channel {} is {}; give --rgb-std", c, std[c]);
    spec.mean.at(c) = static_cast<float>(mean[c]);
    spec.std.at(c) = static_cast<float>(std[c]);
  }
  if (config.normalise == InputSpec::Normalise::mean_image) {
    if (info.mean_image.empty()) {
      fail(Exit::data, "'{}' has no mean image; prepare it with --mean-image, or use --normalise channel", info.folder);
    }
    if (made) {
      fail(
          Exit::usage,
          "--normalise mean-image needs windows of stored pixels (resized, decoded or changed images have moved); use --normalise channel");
    }
    spec.mean_image = info.mean_image;
  }
  return spec;
}

GraphSpec graph_spec(const GraphSpec& model, const DataConfig& config, const DatasetInfo& info) {
  GraphSpec spec = model;
  spec.classes = info.classes;
  spec.channels = info.channels;
  spec.image_size = input_size(config, info).height;
  return spec;
}

}  // namespace convoy
