// SPDX-License-Identifier: Apache-2.0
#include "image/resize.hpp"

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "image/resize_kernels.hpp"

namespace convoy {
namespace {

double triangle(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

/// As Pillow rounds, whose pixels are wanted: lround differs below zero.
Index rounded(double x) { return static_cast<Index>(x + 0.5); }  // NOLINT(bugprone-incorrect-roundings)

}  // namespace

void fill_axis(Resizer::Axis& axis, Index input, double begin, double length, Index size) {
  if (axis.size == size && axis.input == input && axis.begin == begin && axis.length == length) return;
  axis.size = size;
  axis.input = input;
  axis.begin = begin;
  axis.length = length;
  const double scale = length / static_cast<double>(size), filter_scale = std::max(scale, 1.0);
  const double support = filter_scale;  // the triangle's own support is 1
  axis.taps = static_cast<Index>(std::ceil(support)) * 2 + 1;
  const auto count = static_cast<std::size_t>(size), taps = static_cast<std::size_t>(axis.taps);
  axis.first.assign(count, 0);
  axis.count.assign(count, 0);
  axis.weights.assign(count * taps, 0);
  std::vector<double> exact(taps);
  for (std::size_t i = 0; i < count; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<Index>(rounded(centre - support), 0);
    const Index used = std::min(rounded(centre + support), input) - first;
    double sum = 0;
    for (Index t = 0; t < used; ++t) {
      exact[static_cast<std::size_t>(t)] =
          triangle((static_cast<double>(t + first) - centre + 0.5) * (1.0 / filter_scale));
      sum += exact[static_cast<std::size_t>(t)];
    }
    axis.first[i] = static_cast<std::int32_t>(first);
    axis.count[i] = static_cast<std::int32_t>(used);
    for (std::size_t t = 0; t < static_cast<std::size_t>(used); ++t) {
      const double weight = sum == 0 ? exact[t] : exact[t] / sum;
      axis.weights[i * taps + t] = static_cast<std::int32_t>(rounded(weight * (1 << weight_bits)));
    }
  }
}

void Resizer::resize(const ImageView& in, Index height, Index width, std::uint8_t* out) {
  resize(in, {0, 0, static_cast<double>(in.height), static_cast<double>(in.width)}, height, width, out);
}

void Resizer::resize(const ImageView& in, const Box& box, Index height, Index width, std::uint8_t* out) {
  require(height > 0 && width > 0 && in.height > 0 && in.width > 0 && box.height > 0 && box.width > 0,
          "resize: an empty image");
  const bool across = width != in.width || box.x != 0 || box.width != static_cast<double>(in.width);
  const bool down = height != in.height || box.y != 0 || box.height != static_cast<double>(in.height);
  const Index in_bytes = in.width * in.channels, out_bytes = width * in.channels;
  if (!across && !down) {
    for (Index y = 0; y < height; ++y) std::copy_n(in.row(y), in_bytes, out + y * out_bytes);
    return;
  }
  const ResizeKernels& kernels = resize_kernels().back();
  Index first_row = 0, end_row = in.height;
  if (down) {
    fill_axis(rows_, in.height, box.y, box.height, height);
    first_row = rows_.first.front();
    end_row = rows_.first.back() + rows_.count.back();
  }
  ImageView rows = in.part({first_row, 0, end_row - first_row, in.width});
  if (across) {
    fill_axis(columns_, in.width, box.x, box.width, width);
    std::uint8_t* to = out;
    if (down) {
      between_.resize(static_cast<std::size_t>(rows.height * out_bytes));
      to = between_.data();
    }
    scratch_.resize(static_cast<std::size_t>(strip_rows * (in_bytes + out_bytes)));
    for (Index y = 0; y < rows.height; y += strip_rows) {
      kernels.columns(columns_, {.in = rows.row(y),
                                 .in_row_bytes = in.row_bytes,
                                 .out = to + y * out_bytes,
                                 .out_row_bytes = out_bytes,
                                 .rows = std::min(strip_rows, rows.height - y),
                                 .channels = in.channels,
                                 .scratch = scratch_.data()});
    }
    rows = {to, rows.height, width, in.channels, out_bytes};
  }
  if (!down) return;
  for (Index y = 0; y < height; ++y) {
    const auto i = static_cast<std::size_t>(y);
    kernels.rows(rows_.weights.data() + y * rows_.taps, rows_.count[i], rows.row(rows_.first[i] - first_row),
                 rows.row_bytes, out_bytes, out + y * out_bytes);
  }
}

ImageSize with_short_side(const ImageSize& size, Index side) {
  if (size.height <= size.width) return {side, side * size.width / size.height};
  return {side * size.height / size.width, side};
}

ImageSize within_long_side(const ImageSize& size, Index side) {
  const Index longest = std::max(size.height, size.width);
  if (longest <= side) return size;
  const auto scaled = [&](Index length) { return std::max<Index>((length * side + longest / 2) / longest, 1); };
  return {scaled(size.height), scaled(size.width)};
}

Region centre_region(const ImageSize& size, Index height, Index width) {
  const auto half_to_even = [](Index rest) { return rest / 2 + (rest % 2 != 0 && rest / 2 % 2 != 0 ? 1 : 0); };
  return {half_to_even(size.height - height), half_to_even(size.width - width), height, width};
}

}  // namespace convoy
