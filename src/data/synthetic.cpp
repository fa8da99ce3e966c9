// SPDX-License-Identifier: Apache-2.0
// Classes are textures: a few plane waves whose wave vectors name the class. A sample shows its texture through a soft
// round window at a random place, with random phases, contrast and colours, on a random background, under noise. Random
// phases make every pixel's mean the same for all classes, so a linear model has nothing to hold on to; wave energy,
// which a convolution, a ReLU and a global average measure, distinguishes the classes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "data/dataset.hpp"

namespace convoy {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr int atoms = 16;  // 8 directions x 2 frequencies
constexpr int waves = 3;
constexpr std::array<double, waves> amplitudes{1.0, 0.6, 0.4};
static_assert(most_synthetic_classes == atoms * (atoms - 1) * (atoms - 2));

/// Ordered triples of different atoms: the strongest wave differs first, so few classes are far apart.
std::array<int, waves> atoms_of_class(Index label) {
  const auto k = static_cast<int>(label);
  const int first = k % atoms;
  int second = (first + 1 + (5 + k / atoms) % (atoms - 1)) % atoms;
  int third = (k / (atoms * (atoms - 1)) + 3) % (atoms - 2);  // among the atoms left
  const int low = std::min(first, second), high = std::max(first, second);
  if (third >= low) ++third;
  if (third >= high) ++third;
  return {first, second, third};
}

/// cos(k x + p) over one axis and its quadrature; a plane wave is a product of two axes.
struct Axis {
  std::vector<float> cosine, sine;
  Axis(Index length, double radians_per_pixel, double phase)
      : cosine(static_cast<std::size_t>(length)), sine(static_cast<std::size_t>(length)) {
    for (std::size_t i = 0; i < cosine.size(); ++i) {
      const double angle = radians_per_pixel * static_cast<double>(i) + phase;
      cosine[i] = static_cast<float>(std::cos(angle));
      sine[i] = static_cast<float>(std::sin(angle));
    }
  }
};

std::vector<float> bell(Index length, double centre, double radius) {
  std::vector<float> values(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = (static_cast<double>(i) + 0.5 - centre) / radius;
    values[i] = static_cast<float>(std::exp(-0.5 * d * d));
  }
  return values;
}

/// The texture through its window, height * width values of order 1.
std::vector<float> draw_texture(const SyntheticSpec& spec, Index label, Random& random) {
  const auto height = static_cast<std::size_t>(spec.height), width = static_cast<std::size_t>(spec.width);
  std::vector<float> texture(height * width);
  const double side = static_cast<double>(std::min(spec.height, spec.width));
  const auto chosen = atoms_of_class(label);
  for (int w = 0; w < waves; ++w) {
    const int atom = chosen[static_cast<std::size_t>(w)];
    // Waves per side: 3.2 and 5.6 from 32 pixels on; smaller images keep at least 3.2 pixels a wave.
    const double per_side = std::min(atom < atoms / 2 ? 3.2 : 5.6, side / (atom < atoms / 2 ? 5.6 : 3.2));
    constexpr int directions = atoms / 2;
    const double direction = pi * (atom % directions) / directions;
    const double k = 2 * pi * per_side / side;
    const auto amplitude = static_cast<float>(amplitudes[static_cast<std::size_t>(w)]);
    const Axis x(spec.width, k * std::cos(direction), 2 * pi * random.uniform());
    const Axis y(spec.height, k * std::sin(direction), 0);
    for (std::size_t i = 0; i < height; ++i) {
      const float c = amplitude * y.cosine[i], s = amplitude * y.sine[i];
      for (std::size_t j = 0; j < width; ++j) texture[i * width + j] += c * x.cosine[j] - s * x.sine[j];
    }
  }
  const double radius = side * (0.25 + 0.1 * random.uniform());
  const auto rows = bell(spec.height, static_cast<double>(spec.height) * (0.3 + 0.4 * random.uniform()), radius);
  const auto columns = bell(spec.width, static_cast<double>(spec.width) * (0.3 + 0.4 * random.uniform()), radius);
  for (std::size_t i = 0; i < height; ++i) {
    for (std::size_t j = 0; j < width; ++j) texture[i * width + j] *= rows[i] * columns[j];
  }
  return texture;
}

/// Sum of the four bytes of one draw, centred: close to normal, standard deviation 147.8.
float noise(Random& random) {
  const std::uint32_t bits = random.bits();
  const std::uint32_t sum = (bits & 255U) + ((bits >> 8) & 255U) + ((bits >> 16) & 255U) + (bits >> 24);
  return static_cast<float>(sum) - 510.0F;
}

/// Enough for a mean and a standard deviation to two digits, little enough not to be felt at start-up.
constexpr Index measured_samples = 64;

}  // namespace

std::int32_t synthetic_sample(const SyntheticSpec& spec, Index sample, std::uint8_t* image) {
  if (spec.classes < 1 || spec.classes > most_synthetic_classes) {
    fail(Exit::usage, "synthetic data has 1 to {} classes, not {}; choose another number", most_synthetic_classes,
         spec.classes);
  }
  Random random(spec.seed, Stream::synthetic, static_cast<std::uint64_t>(sample));
  const Index label = random.below(spec.classes);
  const std::vector<float> texture = draw_texture(spec, label, random);
  constexpr float noise_scale = 20.0F / 147.8F;
  std::array<float, 4> colour{}, background{};
  const float contrast = 40.0F + 30.0F * random.uniform();
  for (std::size_t c = 0; c < colour.size(); ++c) {
    // Each channel's share keeps away from 0, its sign is free.
    colour[c] = contrast * (0.5F + 0.5F * random.uniform()) * ((random.bits() & 1U) != 0 ? 1.0F : -1.0F);
    background[c] = 128.0F + 60.0F * (random.uniform() - 0.5F);
  }
  const auto channels = static_cast<std::size_t>(spec.channels);
  for (std::size_t i = 0; i < texture.size(); ++i) {
    for (std::size_t c = 0; c < channels; ++c) {
      const float value = background[c] + colour[c] * texture[i] + noise_scale * noise(random);
      image[i * channels + c] = static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
    }
  }
  return static_cast<std::int32_t>(label);
}

DatasetInfo synthetic_info(const SyntheticSpec& spec, const std::string& split) {
  DatasetInfo info;
  info.folder = "synthetic";
  info.split = split;
  info.samples = split == "train" ? spec.samples : std::max<Index>(1, spec.samples / 5);
  info.height = spec.height;
  info.width = spec.width;
  info.channels = spec.channels;
  info.classes = spec.classes;
  for (Index c = 0; c < spec.classes; ++c) info.class_names.push_back(fmt::format("texture-{}", c));
  info.source = "synthetic";
  info.encoding = "raw";
  const auto channels = static_cast<std::size_t>(spec.channels);
  std::vector<std::int64_t> sums(channels), products(channels * channels);
  std::vector<std::uint8_t> image(static_cast<std::size_t>(info.image_bytes()));
  const Index measured = std::min(measured_samples, spec.samples);
  for (Index i = 0; i < measured; ++i) {
    synthetic_sample(spec, i, image.data());
    for (std::size_t pixel = 0; pixel < image.size(); pixel += channels) {
      for (std::size_t a = 0; a < channels; ++a) {
        sums[a] += image[pixel + a];
        for (std::size_t b = 0; b <= a; ++b)
          products[a * channels + b] += std::int64_t{image[pixel + a]} * image[pixel + b];
      }
    }
  }
  const double pixels = static_cast<double>(measured * spec.height * spec.width);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sums[c]) / pixels;
    info.mean.push_back(mean);
    const double squares = static_cast<double>(products[c * channels + c]);
    info.std.push_back(std::sqrt(std::max(1.0, squares / pixels - mean * mean)));
  }
  for (std::size_t a = 0; channels == 3 && a < channels; ++a)
    for (std::size_t b = 0; b < channels; ++b)
      info.covariance.push_back(static_cast<double>(products[std::max(a, b) * channels + std::min(a, b)]) / pixels -
                                info.mean[a] * info.mean[b]);
  info.digest = hash_text(fmt::format("synthetic {} {} {} {} {} {} {}", split, spec.samples, spec.height, spec.width,
                                      spec.channels, spec.classes, spec.seed));
  return info;
}

}  // namespace convoy
