// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "network/plan.hpp"

namespace convoy {
namespace {

using Fill = Initialiser::Fill;

/// Inputs and outputs that one weight of a tensor k c (r s) connects. As PyTorch counts them: groups don't divide the
/// outputs.
struct Fan {
  double in = 1, out = 1;
};

Fan fan_of(const std::vector<Index>& shape) {
  double window = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) window *= static_cast<double>(shape[i]);
  const double k = static_cast<double>(shape.at(0));
  return {(shape.size() > 1 ? static_cast<double>(shape[1]) : 1) * window, k * window};
}

/// torch.nn.init.dirac_ on the filters that have a channel of their own.
void pass_channels_on(const std::vector<Index>& shape, float* values) {
  const Index k = shape.at(0), c = shape.at(1), h = shape.at(2), w = shape.at(3);
  for (Index i = 0; i < std::min(k, c); ++i) {
    float* const filter = values + i * c * h * w;
    std::fill_n(filter, c * h * w, 0.0F);
    filter[(i * h + h / 2) * w + w / 2] = 1;
  }
}

double truncated_normal(Random& random) {
  for (;;)
    if (const double x = random.normal(); std::abs(x) <= 2) return x;
}

/// He: He et al. 2015, eq. 10 (gain of ReLU); Glorot and Bengio 2010, eq. 16. Bounds of uniforms are sqrt(3)
/// deviations.
void fill(const Parameter& row, Random& random, float* values) {
  const Fan fan = fan_of(row.shape);
  const auto normals = [&](double deviation) {
    std::generate_n(values, row.range.count, [&] { return static_cast<float>(deviation * random.normal()); });
  };
  const auto uniforms = [&](double bound) {
    std::generate_n(values, row.range.count,
                    [&] { return static_cast<float>(bound * (2.0 * random.uniform() - 1.0)); });
  };
  const double value = row.initialiser.value;
  switch (row.initialiser.fill) {
    case Fill::zeros:
      std::fill_n(values, row.range.count, 0.0F);
      return;
    case Fill::ones:
      std::fill_n(values, row.range.count, 1.0F);
      return;
    case Fill::he_fan_out_normal:
      normals(std::sqrt(2 / fan.out));
      return;
    case Fill::he_fan_in_normal:
      normals(std::sqrt(2 / fan.in));
      return;
    case Fill::he_fan_in_uniform:
      uniforms(std::sqrt(6 / fan.in));
      return;
    case Fill::xavier_uniform:
      uniforms(std::sqrt(6 / (fan.in + fan.out)));
      return;
    case Fill::xavier_normal:
      normals(std::sqrt(2 / (fan.in + fan.out)));
      return;
    case Fill::normal:
      normals(value);
      return;
    case Fill::truncated_normal:
      std::generate_n(values, row.range.count, [&] { return static_cast<float>(value * truncated_normal(random)); });
      return;
    case Fill::uniform:
      uniforms(value);
      return;
    case Fill::dirac:
    case Fill::whitening:
      uniforms(1 / std::sqrt(fan.in));
      pass_channels_on(row.shape, values);
      return;
  }
  require(false, "unknown initialiser");
}

}  // namespace

void initialise_parameters(const ParameterTable& table, std::uint64_t seed, float* values) {
  std::fill_n(values, table.parameters.count, 0.0F);
  for (const Parameter& row : table.rows) {
    Random random(seed, Stream::initialisation, hash_text(row.name));
    fill(row, random, values + row.range.begin);
  }
}

void initialise_statistics(const ParameterTable& table, float* statistics) {
  std::fill_n(statistics, table.running_floats(), 0.0F);
  for (const NormStatistics& norm : table.norms)
    std::fill_n(statistics + norm.variance.begin, norm.variance.count, 1.0F);
}

}  // namespace convoy
