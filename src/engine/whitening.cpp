// SPDX-License-Identifier: Apache-2.0
#include "engine/whitening.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "comm/agreed_error.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "data/image_maker.hpp"
#include "engine/data.hpp"
#include "network/whitening.hpp"

namespace convoy {
namespace {

/// As many images as the author's program takes.
constexpr Index most_images = 5000;

/// n h w c pixels as InputSpec says, c h w.
void normalise(const InputSpec& spec, const std::uint8_t* pixels, float* to) {
  const Index count = spec.height * spec.width, values = count * spec.channels;
  double mean = 0, squares = 0;
  for (Index i = 0; i < values; ++i) {
    mean += pixels[i] / static_cast<double>(values);
    squares += static_cast<double>(pixels[i]) * pixels[i] / static_cast<double>(values);
  }
  const double deviation =
      std::max(std::sqrt(std::max(squares - mean * mean, 0.0)), 255 / std::sqrt(static_cast<double>(values)));
  for (Index at = 0; at < values; ++at) {
    const Index c = at % spec.channels;
    const auto channel = static_cast<std::size_t>(c);
    double subtract = spec.mean.at(channel), divide = spec.std.at(channel);
    if (spec.normalise == InputSpec::Normalise::mean_image) subtract = spec.mean_image[static_cast<std::size_t>(at)];
    if (spec.normalise == InputSpec::Normalise::per_image) subtract = mean, divide = deviation;
    to[c * count + at / spec.channels] = static_cast<float>((pixels[at] - subtract) / divide);
  }
}

struct Sample {
  std::vector<float> images;  ///< n c h w
  Index count = 0;
  Shape shape;  ///< of one
};

Sample take_sample(const DataConfig& config, const DatasetInfo& train, const AugmentSpec& augment) {
  AugmentSpec shown = augment;
  shown.train = false;
  DataConfig read = config;
  read.cache = DataCache::stream;  // the whole set may fit only into the memory of all ranks
  const auto dataset = load_split(read, train, {0, train.samples}, std::numeric_limits<Index>::max());
  const InputSpec input = input_spec(config, train, shown);
  SampleImages maker(*dataset, shown);
  Sample sample{.images = {},
                .count = std::min(most_images, train.samples),
                .shape = {input.channels, input.height, input.width}};
  sample.images.resize(static_cast<std::size_t>(sample.count * sample.shape.count()));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(SampleImages::image_bytes(*dataset, shown)));
  for (Index i = 0; i < sample.count; ++i) {
    maker.put(i * train.samples / sample.count, 0, 0, pixels.data());
    normalise(input, pixels.data(), sample.images.data() + i * sample.shape.count());
  }
  return sample;
}

const Convolution& whitened(const Plan& plan, const Parameter& row) {
  const Node& node = plan.graph.nodes.at(static_cast<std::size_t>(row.node));
  const auto* convolution = as<Convolution>(node);
  const bool first =
      convolution != nullptr && as<Input>(plan.graph.nodes.at(static_cast<std::size_t>(node.inputs.at(0))));
  if (!first || convolution->groups > 1)
    fail(Exit::usage,
         "'{}' can't start by whitening (only a convolution of the images, without groups, can); choose "
         "another start",
         row.name);
  return *convolution;
}

}  // namespace

std::vector<double> patch_moments(const std::vector<float>& images, Index count, const Shape& image, Index r, Index s) {
  const Index side = image.c * r * s, down = image.h - r + 1, across = image.w - s + 1;
  require(down > 0 && across > 0, "patches larger than the images");
  std::vector<double> sums(static_cast<std::size_t>(side * side), 0), patch(static_cast<std::size_t>(side));
  for (Index n = 0; n < count; ++n) {
    const float* const x = images.data() + n * image.count();
    for (Index p = 0; p < down; ++p) {
      for (Index q = 0; q < across; ++q) {
        std::size_t i = 0;
        for (Index c = 0; c < image.c; ++c)
          for (Index y = 0; y < r; ++y)
            for (Index z = 0; z < s; ++z) patch[i++] = x[(c * image.h + p + y) * image.w + q + z];
        for (std::size_t a = 0; a < patch.size(); ++a)
          for (std::size_t b = 0; b <= a; ++b) sums[a * patch.size() + b] += patch[a] * patch[b];
      }
    }
  }
  const double patches = static_cast<double>(count) * static_cast<double>(down * across);
  for (std::size_t a = 0; a < patch.size(); ++a)
    for (std::size_t b = 0; b <= a; ++b)
      sums[b * patch.size() + a] = sums[a * patch.size() + b] = sums[a * patch.size() + b] / patches;
  return sums;
}

void whiten_first_layers(Communicator& communicator, const DataConfig& config, const DatasetInfo& train,
                         const AugmentSpec& augment, const Plan& plan,
                         const std::function<bool(const Parameter&)>& starts_anew, float* values) {
  std::vector<const Parameter*> rows;
  for (const Parameter& row : plan.table.rows)
    if (row.initialiser.fill == Initialiser::Fill::whitening && starts_anew(row)) rows.push_back(&row);
  if (rows.empty()) return;
  run_agreed(communicator, "whitening the first layer", [&] {
    if (communicator.rank() != 0) return;
    const Sample sample = take_sample(config, train, augment);
    for (const Parameter* row : rows) {
      const Convolution& convolution = whitened(plan, *row);
      const Index r = convolution.kernel, s = convolution.s();
      const auto filters = whitening_filters(patch_moments(sample.images, sample.count, sample.shape, r, s),
                                             sample.shape.c * r * s, convolution.out);
      std::copy(filters.begin(), filters.end(), values + row->range.begin);
      log::info("'{}' whitens patches of {}x{} pixels, from {} images", row->name, r, s, sample.count);
    }
  });
  for (const Parameter* row : rows)
    communicator.broadcast(
        std::as_writable_bytes(std::span(values + row->range.begin, static_cast<std::size_t>(row->range.count))), 0,
        "broadcast of the whitening filters");
}

}  // namespace convoy
