// SPDX-License-Identifier: Apache-2.0
#include "image/colour.hpp"

#include <algorithm>
#include <cmath>

namespace convoy {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

std::uint8_t clipped(double value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)); }

/// Pillow's blend: towards `from` by 1 - factor, rounded down.
std::uint8_t blend(std::uint8_t from, std::uint8_t value, float factor) {
  const float mixed = static_cast<float>(from) + factor * static_cast<float>(value - from);
  return static_cast<std::uint8_t>(std::min(std::max(mixed, 0.0F), 255.0F));
}

void look_up(const Canvas& canvas, const Table& table) {
  const Index bytes = canvas.bytes();
  for (Index i = 0; i < bytes; ++i) canvas.pixels[i] = table[canvas.pixels[i]];
}

void look_up(const Canvas& canvas, const std::array<Table, 3>& tables) {
  const Index pixels = canvas.height * canvas.width;
  for (Index i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint8_t& value = canvas.pixels[i * 3 + static_cast<Index>(c)];
      value = tables[c][value];
    }
  }
}

template <class Function>
Table table_of(const Function& function) {
  Table table{};
  for (int v = 0; v < 256; ++v) table[static_cast<std::size_t>(v)] = function(v);
  return table;
}

/// ITU-R 601-2 luma in Pillow's fixed point.
std::uint8_t grey_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

std::array<Histogram, 3> histograms(const Canvas& canvas) {
  std::array<Histogram, 3> counts{};
  const Index pixels = canvas.height * canvas.width;
  for (Index i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ++counts[c][canvas.pixels[i * 3 + static_cast<Index>(c)]];
  }
  return counts;
}

Table identity() {
  return table_of([](int v) { return static_cast<std::uint8_t>(v); });
}

}  // namespace

void adjust_brightness(const Canvas& canvas, float factor) {
  look_up(canvas, table_of([&](int v) { return blend(0, static_cast<std::uint8_t>(v), factor); }));
}

void adjust_contrast(const Canvas& canvas, float factor) {
  const Index pixels = canvas.height * canvas.width;
  std::int64_t sum = 0;
  for (Index i = 0; i < pixels; ++i) sum += grey_of(canvas.pixels + i * 3);
  const auto mean = static_cast<std::uint8_t>(std::floor(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5));
  look_up(canvas, table_of([&](int v) { return blend(mean, static_cast<std::uint8_t>(v), factor); }));
}

void adjust_saturation(const Canvas& canvas, float factor) {
  const Index pixels = canvas.height * canvas.width;
  for (Index i = 0; i < pixels; ++i) {
    std::uint8_t* const rgb = canvas.pixels + i * 3;
    const std::uint8_t grey = grey_of(rgb);
    for (int c = 0; c < 3; ++c) rgb[c] = blend(grey, rgb[c], factor);
  }
}

void adjust_sharpness(const Canvas& canvas, float factor, std::vector<std::uint8_t>& scratch) {
  scratch.assign(canvas.pixels, canvas.pixels + canvas.bytes());
  const Index row = canvas.width * 3;
  // Pillow's SMOOTH: 1 all around, 5 in the middle, over 13, rounded; the rim stays.
  for (Index y = 1; y + 1 < canvas.height; ++y) {
    const std::uint8_t* const above = scratch.data() + (y - 1) * row;
    std::uint8_t* const to = canvas.pixels + y * row;
    for (Index i = 3; i + 3 < row; ++i) {
      int sum = 4 * above[row + i];
      for (Index line = 0; line < 3; ++line)
        sum += above[line * row + i - 3] + above[line * row + i] + above[line * row + i + 3];
      const auto smooth = static_cast<std::uint8_t>((2 * sum + 13) / 26);
      to[i] = blend(smooth, above[row + i], factor);
    }
  }
}

void shift_hue(const Canvas& canvas, double shift) {
  const auto turn = static_cast<std::uint8_t>(static_cast<std::int32_t>(shift * 255));
  const Index pixels = canvas.height * canvas.width;
  for (Index i = 0; i < pixels; ++i) {
    std::uint8_t* const rgb = canvas.pixels + i * 3;
    const int r = rgb[0], g = rgb[1], b = rgb[2];
    const int high = std::max({r, g, b}), low = std::min({r, g, b});
    if (high == low) continue;  // no saturation, no hue
    const auto range = static_cast<float>(high - low);
    const float red = static_cast<float>(high - r) / range, green = static_cast<float>(high - g) / range,
                blue = static_cast<float>(high - b) / range;
    const float sector = r == high ? blue - green : g == high ? 2 + red - blue : 4 + green - red;
    const double circle = std::fmod(static_cast<double>(sector) / 6.0 + 1.0, 1.0);
    const float ratio = range / static_cast<float>(high);
    const int saturation = static_cast<int>(static_cast<double>(ratio) * 255.0);
    const auto hue = static_cast<std::uint8_t>(static_cast<int>(static_cast<float>(circle) * 255.0) + turn);
    if (saturation == 0) {
      std::fill_n(rgb, 3, static_cast<std::uint8_t>(high));
      continue;
    }
    const double place = hue * 6.0 / 255.0, part = place - std::floor(place), s = saturation / 255.0, v = high;
    const auto level = [&](double share) { return static_cast<std::uint8_t>(std::lround(v * (1 - share))); };
    const std::uint8_t top = static_cast<std::uint8_t>(high), p = level(s), q = level(s * part),
                       t = level(s * (1 - part));
    const std::array<std::array<std::uint8_t, 3>, 6> sectors{
        {{top, t, p}, {q, top, p}, {p, top, t}, {p, q, top}, {t, p, top}, {top, p, q}}};
    std::copy_n(sectors[static_cast<std::size_t>(place) % 6].begin(), 3, rgb);
  }
}

void shift_hsl(const Canvas& canvas, float hue, float saturation, float lightness) {
  const Index pixels = canvas.height * canvas.width;
  for (Index i = 0; i < pixels; ++i) {
    std::uint8_t* const rgb = canvas.pixels + i * 3;
    const float r = rgb[0] / 255.0F, g = rgb[1] / 255.0F, b = rgb[2] / 255.0F;
    const float high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
    float l = (high + low) / 2, s = 0, h = 0;  // h in sixths of the circle
    if (range > 0) {
      s = range / (1 - std::abs(2 * l - 1));
      h = high == r ? (g - b) / range : high == g ? 2 + (b - r) / range : 4 + (r - g) / range;
    }
    h += hue / 30;
    s = std::clamp(s + saturation / 255, 0.0F, 1.0F);
    l = std::clamp(l + lightness / 255, 0.0F, 1.0F);
    // Each channel's value by its distance from the hue: Smith's formula for HSL without cases.
    const float amplitude = s * std::min(l, 1 - l);
    const auto channel = [&](float offset) {
      float k = std::fmod(offset + 2 * h, 12.0F);
      if (k < 0) k += 12;
      const float value = l - amplitude * std::max(-1.0F, std::min({k - 3, 9 - k, 1.0F}));
      return clipped(static_cast<double>(value) * 255 + 0.5);
    };
    rgb[0] = channel(0);
    rgb[1] = channel(8);
    rgb[2] = channel(4);
  }
}

void shift_channels(const Canvas& canvas, const std::array<float, 3>& by) {
  std::array<Table, 3> tables;
  for (std::size_t c = 0; c < 3; ++c) tables[c] = table_of([&](int v) { return clipped(std::floor(v + 0.5 + by[c])); });
  look_up(canvas, tables);
}

std::array<float, 3> lighting_shift(const ColourComponents& colours, const std::array<double, 3>& weights) {
  std::array<float, 3> shift{};
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += colours.components[c][i] * colours.eigenvalues[i] * weights[i];
    shift[c] = static_cast<float>(255 * sum);
  }
  return shift;
}

void posterize(const Canvas& canvas, int bits) {
  const int mask = 0xff & ~((1 << (8 - bits)) - 1);
  look_up(canvas, table_of([&](int v) { return static_cast<std::uint8_t>(v & mask); }));
}

void solarize(const Canvas& canvas, double threshold) {
  look_up(canvas, table_of([&](int v) { return static_cast<std::uint8_t>(v < threshold ? v : 255 - v); }));
}

void invert(const Canvas& canvas) {
  look_up(canvas, table_of([](int v) { return static_cast<std::uint8_t>(255 - v); }));
}

void stretch_contrast(const Canvas& canvas) {
  const auto counts = histograms(canvas);
  std::array<Table, 3> tables;
  for (std::size_t c = 0; c < 3; ++c) {
    int low = 0, high = 255;
    while (low < 255 && counts[c][static_cast<std::size_t>(low)] == 0) ++low;
    while (high > 0 && counts[c][static_cast<std::size_t>(high)] == 0) --high;
    tables[c] = identity();
    if (high <= low) continue;
    const double scale = 255.0 / (high - low), offset = -low * scale;
    tables[c] = table_of([&](int v) { return clipped(v * scale + offset); });
  }
  look_up(canvas, tables);
}

void equalize(const Canvas& canvas) {
  const auto counts = histograms(canvas);
  std::array<Table, 3> tables;
  for (std::size_t c = 0; c < 3; ++c) {
    const auto last = std::find_if(counts[c].rbegin(), counts[c].rend(), [](std::int64_t n) { return n > 0; });
    const std::int64_t step = (canvas.height * canvas.width - *last) / 255;
    tables[c] = identity();
    if (step == 0) continue;
    std::int64_t sum = step / 2;
    for (std::size_t v = 0; v < 256; ++v) {
      tables[c][v] = static_cast<std::uint8_t>(std::min<std::int64_t>(sum / step, 255));
      sum += counts[c][v];
    }
  }
  look_up(canvas, tables);
}

}  // namespace convoy
