// SPDX-License-Identifier: Apache-2.0
#include "infer/picture.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/cpu/operations/input.hpp"
#include "core/errors.hpp"
#include "core/text.hpp"
#include "data/image_maker.hpp"
#include "image/jpeg.hpp"
#include "image/resize.hpp"

namespace convoy {
namespace {

/// Without the scale, so that pixels come back by adding the mean.
InputSpec unscaled(InputSpec input, const DatasetInfo& info) {
  if (input.normalise != InputSpec::Normalise::channel)
    for (std::size_t c = 0; c < static_cast<std::size_t>(input.channels); ++c)
      input.mean[c] = static_cast<float>(info.mean[c]);
  input.normalise = InputSpec::Normalise::channel;
  input.std = {1, 1, 1, 1};
  return input;
}

std::uint8_t to_pixel(float value) { return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.F, 255.F))); }

}  // namespace

InputPictures::InputPictures(const Dataset& dataset, const AugmentSpec& augment, InputSpec input)
    : dataset_(dataset), augment_(augment), input_(unscaled(std::move(input), dataset.info())) {
  if (input_.channels != 1 && input_.channels != 3)
    fail(Exit::usage, "images of {} channels can't be shown; pictures have 1 or 3", input_.channels);
}

std::vector<Image> InputPictures::make(std::span<const Index> samples, Index epoch, std::vector<SampleSpec>& specs) {
  const Index bytes = SampleImages::image_bytes(dataset_, augment_), channels = input_.channels;
  std::vector<std::uint8_t> rows(samples.size() * static_cast<std::size_t>(bytes));
  specs.assign(samples.size(), {});
  SampleImages images(dataset_, augment_);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto position = static_cast<Index>(i);
    const Index sample = images.put(samples[i], epoch, position, rows.data() + position * bytes);
    augment(augment_, epoch, position, dataset_.id(sample), specs[i]);
    specs[i].a = specs[i].b = dataset_.label(sample);
    specs[i].position = specs[i].sample = position;
  }
  if (augment_.train && augment_.mixing.any()) mix_batch(augment_, epoch, specs);
  const Index height = augment_.height, width = augment_.width, plane = height * width;
  std::vector<float> x(samples.size() * static_cast<std::size_t>(plane * channels));
  cpu::make_input(input_, specs, rows.data(), height, width, x.data());
  std::vector<Image> made(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    made[i].reshape(height, width, channels);
    const float* const of = x.data() + static_cast<Index>(i) * plane * channels;
    for (Index c = 0; c < channels; ++c)
      for (Index at = 0; at < plane; ++at)
        made[i].pixels[static_cast<std::size_t>(at * channels + c)] =
            to_pixel(of[c * plane + at] + input_.mean[static_cast<std::size_t>(c)]);
  }
  return made;
}

std::string jpeg_text(const Image& image, Index side, int quality) {
  const ImageSize size = within_long_side({image.height, image.width}, side);
  Image shown;
  shown.reshape(size.height, size.width, image.channels);
  Resizer().resize(image.view(), size.height, size.width, shown.pixels.data());
  std::vector<std::uint8_t> file;
  encode_jpeg(shown.view(), quality, file);
  return base64(file);
}

}  // namespace convoy
