// SPDX-License-Identifier: Apache-2.0
#include "image/affine.hpp"

#include <algorithm>
#include <cmath>

namespace convoy {
namespace {

constexpr double radians_per_degree = 3.14159265358979323846 / 180;

/// Pillow steps through the source in 16.16 fixed point.
std::int64_t fixed(double v) { return static_cast<std::int64_t>(std::floor(v * 65536.0 + 0.5)); }

void sample_nearest(const Canvas& to, const std::uint8_t* from, const AffineMatrix& m, std::uint8_t fill) {
  const std::int64_t step_x = fixed(m[0]), step_y = fixed(m[3]), down_x = fixed(m[1]), down_y = fixed(m[4]);
  std::int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  std::uint8_t* out = to.pixels;
  for (Index y = 0; y < to.height; ++y, row_x += down_x, row_y += down_y) {
    std::int64_t at_x = row_x, at_y = row_y;
    for (Index x = 0; x < to.width; ++x, out += 3, at_x += step_x, at_y += step_y) {
      const std::int64_t source_x = at_x >> 16, source_y = at_y >> 16;
      if (source_x >= 0 && source_x < to.width && source_y >= 0 && source_y < to.height) {
        std::copy_n(from + (source_y * to.width + source_x) * 3, 3, out);
      } else {
        std::fill_n(out, 3, fill);
      }
    }
  }
}

/// Neighbours beyond the rim repeat it; a centre outside of the image is fill.
void sample_bilinear(const Canvas& to, const std::uint8_t* from, const AffineMatrix& m, std::uint8_t fill) {
  std::uint8_t* out = to.pixels;
  const auto width = static_cast<double>(to.width), height = static_cast<double>(to.height);
  for (Index y = 0; y < to.height; ++y) {
    for (Index x = 0; x < to.width; ++x, out += 3) {
      const double column = static_cast<double>(x) + 0.5, row = static_cast<double>(y) + 0.5;
      const double at_x = m[0] * column + m[1] * row + m[2], at_y = m[3] * column + m[4] * row + m[5];
      if (!(at_x >= 0 && at_x < width && at_y >= 0 && at_y < height)) {
        std::fill_n(out, 3, fill);
        continue;
      }
      const double left = std::floor(at_x - 0.5), top = std::floor(at_y - 0.5);
      const double dx = at_x - 0.5 - left, dy = at_y - 0.5 - top;
      const auto pixel = [&](double py, double px) {
        const auto inside_y = static_cast<Index>(std::clamp(py, 0.0, height - 1));
        const auto inside_x = static_cast<Index>(std::clamp(px, 0.0, width - 1));
        return from + (inside_y * to.width + inside_x) * 3;
      };
      const std::uint8_t *a = pixel(top, left), *b = pixel(top, left + 1), *c = pixel(top + 1, left),
                         *d = pixel(top + 1, left + 1);
      for (int k = 0; k < 3; ++k) {
        const double upper = a[k] + (b[k] - a[k]) * dx, lower = c[k] + (d[k] - c[k]) * dx;
        out[k] = static_cast<std::uint8_t>(upper + (lower - upper) * dy + 0.5);
      }
    }
  }
}

}  // namespace

AffineMatrix inverse_affine(const AffineSpec& spec) {
  const double rotation = spec.degrees * radians_per_degree, shear_x = spec.shear_x * radians_per_degree,
               shear_y = spec.shear_y * radians_per_degree;
  const double a = std::cos(rotation - shear_y) / std::cos(shear_y);
  const double b = -std::cos(rotation - shear_y) * std::tan(shear_x) / std::cos(shear_y) - std::sin(rotation);
  const double c = std::sin(rotation - shear_y) / std::cos(shear_y);
  const double d = -std::sin(rotation - shear_y) * std::tan(shear_x) / std::cos(shear_y) + std::cos(rotation);
  AffineMatrix m{d, -b, 0, -c, a, 0};
  for (double& value : m) value /= spec.scale;
  const double x = -spec.centre_x - spec.move_x, y = -spec.centre_y - spec.move_y;
  m[2] += m[0] * x + m[1] * y + spec.centre_x;
  m[5] += m[3] * x + m[4] * y + spec.centre_y;
  return m;
}

void transform(const Canvas& canvas, const AffineMatrix& matrix, Sampling sampling, std::uint8_t fill,
               std::vector<std::uint8_t>& scratch) {
  scratch.assign(canvas.pixels, canvas.pixels + canvas.bytes());
  if (sampling == Sampling::nearest) {
    sample_nearest(canvas, scratch.data(), matrix, fill);
  } else {
    sample_bilinear(canvas, scratch.data(), matrix, fill);
  }
}

}  // namespace convoy
