// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/stop.hpp"
#include "data/dataset.hpp"

namespace convoy {
namespace {

/// Enough for a mean and a standard deviation to two digits, little enough not to be felt at start-up.
constexpr Index measured_samples = 64;
constexpr Index samples_between_looks = 256;

Index first_sample(const SyntheticSpec& spec, const std::string& split) { return split == "train" ? 0 : spec.samples; }

}  // namespace

DatasetInfo synthetic_info(const SyntheticSpec& spec, const std::string& split) {
  DatasetInfo info;
  info.folder = "synthetic";
  info.split = split;
  info.samples = split == "train" ? spec.samples : std::max<Index>(1, spec.samples / 5);
  info.height = spec.height;
  info.width = spec.width;
  info.channels = spec.channels;
  info.classes = spec.classes;
  for (Index c = 0; c < spec.classes; ++c) info.class_names.push_back(fmt::format("class-{}", c));
  info.source = "synthetic";
  info.encoding = "raw";
  const auto channels = static_cast<std::size_t>(spec.channels);
  std::vector<std::int64_t> sums(channels), squares(channels);
  std::vector<std::uint8_t> image(static_cast<std::size_t>(info.image_bytes()));
  const Index measured = std::min(measured_samples, spec.samples);
  for (Index i = 0; i < measured; ++i) {
    synthetic_sample(spec, i, image.data());
    for (std::size_t k = 0; k < image.size(); ++k) {
      const std::int64_t v = image[k];
      sums[k % channels] += v;
      squares[k % channels] += v * v;
    }
  }
  const double pixels = static_cast<double>(measured * spec.height * spec.width);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sums[c]) / pixels;
    info.mean.push_back(mean);
    info.std.push_back(std::sqrt(std::max(1.0, static_cast<double>(squares[c]) / pixels - mean * mean)));
  }
  info.digest = hash_text(fmt::format("synthetic {} {} {} {} {} {} {}", split, spec.samples, spec.height, spec.width,
                                      spec.channels, spec.classes, spec.seed));
  return info;
}

Dataset::Dataset(const SyntheticSpec& spec, DatasetInfo info, Range range) : info_(std::move(info)), range_(range) {
  const auto bytes = static_cast<std::size_t>(info_.image_bytes());
  images_ = allocate_images(static_cast<std::size_t>(range.count) * bytes);
  image_block_bytes_ = range.count * info_.image_bytes();
  const Index first = first_sample(spec, info_.split);
  for (Index i = range.begin; i < range.end(); ++i) {
    if (i % samples_between_looks == 0) leave_if_stopped("making the samples");
    labels_.push_back(info_.label_of(
        synthetic_sample(spec, first + i, images_.get() + static_cast<std::size_t>(i - range.begin) * bytes)));
    ids_.push_back(i);
  }
}

}  // namespace convoy
