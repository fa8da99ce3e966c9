// SPDX-License-Identifier: Apache-2.0
#include "support/reference/input.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace convoy::reference {
namespace {

class Image {
 public:
  Image(const InputSpec& spec, const SampleSpec& sample, const std::uint8_t* images, Index height, Index width)
      : spec_(spec), sample_(sample), images_(images), height_(height), width_(width) {
    if (spec.normalise != InputSpec::Normalise::per_image) return;
    const double count = static_cast<double>(height * width * spec.channels);
    for (const Index power : {1, 2}) {
      double sum = 0;
      for (Index c = 0; c < spec.channels; ++c) {
        for (Index p = 0; p < height; ++p) {
          for (Index q = 0; q < width; ++q) {
            const double pixel = stored(c, p, q).value_or(0) / 255.0;
            sum += power == 1 ? pixel : (pixel - mean_) * (pixel - mean_);
          }
        }
      }
      (power == 1 ? mean_ : deviation_) =
          power == 1 ? sum / count : std::max(std::sqrt(sum / count), 1 / std::sqrt(count));
    }
  }

  double value(Index c, Index p, Index q) const {
    if (p >= sample_.erase_y && p < sample_.erase_y + sample_.erase_h && q >= sample_.erase_x &&
        q < sample_.erase_x + sample_.erase_w) {
      return 0;
    }
    const auto channel = static_cast<std::size_t>(c);
    const std::optional<int> pixel = stored(c, p, q);
    switch (spec_.normalise) {
      case InputSpec::Normalise::channel:
        return (pixel.value_or(0) - double{spec_.mean[channel]}) / spec_.std[channel];
      case InputSpec::Normalise::mean_image:
        return pixel ? (*pixel - double{spec_.mean_image[place(c, p, q)]}) / spec_.std[channel] : 0;
      case InputSpec::Normalise::per_image:
        return (pixel.value_or(0) / 255.0 - mean_) / deviation_;
    }
    return NAN;
  }

 private:
  /// A reflected line repeats every 2 * (size - 1) pixels, and is the same in both directions.
  Index shown(Index at, Index size) const {
    if (spec_.padding == Padding::constant) return at;
    const Index period = std::max<Index>(2 * (size - 1), 1), inside = std::abs(at) % period;
    return inside < size ? inside : period - inside;
  }
  Index source_row(Index p) const {
    return shown(sample_.y + (sample_.vertical_flip != 0 ? height_ - 1 - p : p), spec_.height);
  }
  Index source_column(Index q) const {
    return shown(sample_.x + (sample_.flip != 0 ? width_ - 1 - q : q), spec_.width);
  }
  std::size_t place(Index c, Index p, Index q) const {
    return static_cast<std::size_t>((source_row(p) * spec_.width + source_column(q)) * spec_.channels + c);
  }
  /// The pixel under output (p, q); nothing where that is padding.
  std::optional<int> stored(Index c, Index p, Index q) const {
    if (source_row(p) < 0 || source_row(p) >= spec_.height || source_column(q) < 0 || source_column(q) >= spec_.width)
      return {};
    return images_[static_cast<std::size_t>(sample_.sample * spec_.height * spec_.width * spec_.channels) +
                   place(c, p, q)];
  }

  const InputSpec& spec_;
  const SampleSpec& sample_;
  const std::uint8_t* images_;
  Index height_, width_;
  double mean_ = 0, deviation_ = 1;
};

}  // namespace

Tensor make_input(const InputSpec& spec, std::span<const SampleSpec> samples, const std::uint8_t* images, Index height,
                  Index width) {
  Tensor x(static_cast<Index>(samples.size()), spec.channels, height, width);
  for (Index i = 0; i < x.n; ++i) {
    const SampleSpec& sample = samples[static_cast<std::size_t>(i)];
    const Image own(spec, sample, images, height, width);
    std::optional<Image> partner;
    if (sample.partner >= 0)
      partner.emplace(spec, samples[static_cast<std::size_t>(sample.partner)], images, height, width);
    for (Index c = 0; c < x.c; ++c) {
      for (Index p = 0; p < height; ++p) {
        for (Index q = 0; q < width; ++q) {
          x.at(i, c, p, q) = own.value(c, p, q);
          if (!partner) continue;
          const bool in_box = p >= sample.mix_y && p < sample.mix_y + sample.mix_h && q >= sample.mix_x &&
                              q < sample.mix_x + sample.mix_w;
          if (sample.mix_h > 0) {
            if (in_box) x.at(i, c, p, q) = partner->value(c, p, q);
          } else {
            x.at(i, c, p, q) = sample.lambda * x.at(i, c, p, q) + (1 - double{sample.lambda}) * partner->value(c, p, q);
          }
        }
      }
    }
  }
  return x;
}

}  // namespace convoy::reference
