// SPDX-License-Identifier: Apache-2.0
// Values for tests that two programs can compute: f(name, index), exact in fp32. The same in Python:
// tests/golden/formula.py.
#pragma once
#include <cmath>
#include <string>

#include "backend/backend.hpp"
#include "core/hash.hpp"
#include "support/reference/tensor.hpp"

namespace convoy {

inline std::uint64_t formula_bits(const std::string& name, Index i) {
  return mix_bits(hash_text(name) + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL);
}
/// A multiple of 2^-23 in [-1, 1).
inline float formula_uniform(const std::string& name, Index i) {
  return static_cast<float>(static_cast<std::int64_t>(formula_bits(name, i) >> 40) - (1 << 23)) * 0x1p-23F;
}
/// offset + scale * uniform, each step rounded to fp32.
inline reference::Values formula_values(const std::string& name, Index count, double scale = 1, double offset = 0) {
  reference::Values values(static_cast<std::size_t>(count));
  const std::uint64_t start = hash_text(name);
  const auto by = static_cast<float>(scale), from = static_cast<float>(offset);
  for (Index i = 0; i < count; ++i) {
    const std::uint64_t bits = mix_bits(start + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL);
    // volatile: a fused multiply-add would round once.
    const volatile float product =
        by * (static_cast<float>(static_cast<std::int64_t>(bits >> 40) - (1 << 23)) * 0x1p-23F);
    values[static_cast<std::size_t>(i)] = from + product;
  }
  return values;
}
inline reference::Tensor formula_tensor(const std::string& name, reference::Tensor shape, double scale = 1) {
  shape.values = formula_values(name, shape.count(), scale);
  return shape;
}
/// Stored images, n h w c.
inline std::vector<std::uint8_t> formula_images(const std::string& name, Index count) {
  std::vector<std::uint8_t> images(static_cast<std::size_t>(count));
  const std::uint64_t start = hash_text(name);
  for (Index i = 0; i < count; ++i) {
    images[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(mix_bits(start + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL) >> 56);
  }
  return images;
}
/// What a network sees of them: (pixel - 128) / 64, exact in fp32.
inline InputSpec formula_input(Index height, Index width, Index channels) {
  InputSpec input;
  input.height = height;
  input.width = width;
  input.channels = channels;
  input.mean.fill(128);
  input.std.fill(64);
  return input;
}
inline reference::Tensor formula_network_input(const std::vector<std::uint8_t>& images,
                                               const reference::Tensor& shape) {
  reference::Tensor x = reference::Tensor::like(shape);
  std::size_t at = 0;
  for (Index i = 0; i < x.n; ++i) {
    for (Index p = 0; p < x.h; ++p) {
      for (Index q = 0; q < x.w; ++q) {
        for (Index c = 0; c < x.c; ++c) x.at(i, c, p, q) = (images[at++] - 128.0) / 64;
      }
    }
  }
  return x;
}
/// Of one parameter: weights bounded as He's uniform initialiser, norm scales around 1, the rest small.
inline reference::Values formula_parameter(const std::string& name, Kind kind, const std::vector<Index>& shape) {
  Index count = 1;
  for (const Index size : shape) count *= size;
  switch (kind) {
    case Kind::weight:
      return formula_values(name, count,
                            std::sqrt(6.0 * static_cast<double>(shape.at(0)) / static_cast<double>(count)));
    case Kind::norm_scale:
      return formula_values(name, count, 0.25, 1);
    case Kind::bias:
    case Kind::norm_shift:
      break;
  }
  return formula_values(name, count, 0.1);
}
/// All parameters of a table, as it lays them out.
inline reference::Values formula_parameters(const ParameterTable& table) {
  reference::Values block(static_cast<std::size_t>(table.parameters.count), 0.0);
  for (const Parameter& row : table.rows) {
    const reference::Values values = formula_parameter(row.name, row.kind, row.shape);
    std::copy(values.begin(), values.end(), block.begin() + row.range.begin);
  }
  return block;
}
/// Labels of a batch; `mixed`: two a sample, weighted.
inline std::vector<SampleSpec> formula_samples(const std::string& name, Index n, Index classes, bool mixed) {
  std::vector<SampleSpec> samples(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    SampleSpec& sample = samples[static_cast<std::size_t>(i)];
    const auto label = [&](const char* which) {
      return static_cast<std::int32_t>(formula_bits(name + which, i) % static_cast<std::uint64_t>(classes));
    };
    sample.sample = i;
    sample.position = 100 + 7 * i;
    sample.a = label("/a");
    if (!mixed) continue;
    sample.b = label("/b");
    sample.lambda = (formula_uniform(name + "/lambda", i) + 1) / 2;
  }
  return samples;
}

}  // namespace convoy
