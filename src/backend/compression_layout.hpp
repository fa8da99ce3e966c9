// SPDX-License-Identifier: Apache-2.0
// Which tensors of a gradient block are compressed before they travel, and what is kept of them.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/compression.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "network/parameter_table.hpp"

namespace convoy {

/// A weight of k x (c r s) values, which is a matrix of `rows` x `columns`.
struct CompressedTensor {
  std::string name;
  std::vector<Index> shape;
  Range gradient;     ///< of the gradient block
  Range residual;     ///< of a replica's residuals
  Range basis, left;  ///< power_sgd: of the bases (rank x columns), of the left factors (rows x rank)
  Index rows = 0, columns = 0;
  Index kept = 0;  ///< top_k: values that travel
  Range message;   ///< two_bits, top_k: bytes of a replica's message
};

struct CompressionLayout {
  std::vector<CompressedTensor> tensors;
  std::vector<Range> plain;  ///< of the gradient block: what travels as it is, tail and flags included
  Index residual_floats = 0, basis_floats = 0, left_floats = 0, plain_floats = 0, message_bytes = 0;
};

/// Biases and scales of norms travel as they are, and so do matrices of which the factors would be no smaller. The
/// layer that makes the classes is compressed, too: nothing makes its update orthogonal, which is why Muon leaves it
/// out.
inline bool is_compressed(const Parameter& row, const CompressionSpec& spec) {
  if (!spec.is_on() || !row.trainable || row.kind != Kind::weight || row.shape.size() < 2) return false;
  const Index rows = row.shape.front(), columns = row.range.count / rows;
  return spec.kind != Compression::power_sgd || spec.rank * (rows + columns) < rows * columns;
}

inline CompressionLayout compression_layout(const ParameterTable& table, const CompressionSpec& spec) {
  CompressionLayout layout;
  Index plain_from = 0;
  const auto take = [](Index& total, Index count) {
    const Range range{total, count};
    total = align_floats(range.end());
    return range;
  };
  const auto take_bytes = [&](Index count) {
    constexpr Index word = 4;  // messages contain whole numbers
    const Range range{layout.message_bytes, count};
    layout.message_bytes = (range.end() + word - 1) / word * word;
    return range;
  };
  const auto leave = [&](Index end) {
    if (end > plain_from) layout.plain.push_back({plain_from, end - plain_from});
    layout.plain_floats += align_floats(std::max<Index>(end - plain_from, 0));
  };
  for (const Parameter& row : table.rows) {
    if (!is_compressed(row, spec)) continue;
    CompressedTensor tensor{.name = row.name, .shape = row.shape, .gradient = row.range};
    const Index count = row.range.count;
    tensor.rows = row.shape.front();
    tensor.columns = count / tensor.rows;
    tensor.residual = take(layout.residual_floats, count);
    switch (spec.kind) {
      case Compression::none:
        break;
      case Compression::two_bits:
        tensor.message = take_bytes((count + 3) / 4);
        break;
      case Compression::top_k:
        tensor.kept = std::clamp<Index>(std::llround(std::ceil(spec.fraction * static_cast<double>(count))), 1, count);
        tensor.message = take_bytes(8 * tensor.kept);
        break;
      case Compression::power_sgd:
        tensor.basis = take(layout.basis_floats, spec.rank * tensor.columns);
        tensor.left = take(layout.left_floats, tensor.rows * spec.rank);
        break;
    }
    leave(row.range.begin);
    plain_from = align_floats(row.range.end());
    layout.tensors.push_back(std::move(tensor));
  }
  leave(table.flags.end());
  return layout;
}

/// Whether what replicas keep between steps is of the same tensors, in the same places.
inline bool have_equal_state(const CompressionLayout& a, const CompressionLayout& b) {
  return std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    [](const CompressedTensor& one, const CompressedTensor& other) {
                      return one.name == other.name && one.residual == other.residual && one.basis == other.basis;
                    });
}

/// Row j of a tensor's first basis, and of one that has lost it: numbers that depend on name and row alone, the same on
/// every host.
inline void fill_basis_row(const CompressedTensor& tensor, Index j, float* row) {
  Random random(hash_text(tensor.name), Stream::basis, static_cast<std::uint64_t>(j));
  for (Index i = 0; i < tensor.columns; ++i) row[i] = random.uniform() - 0.5F;
}

inline void fill_first_bases(const CompressionLayout& layout, float* bases) {
  for (const CompressedTensor& tensor : layout.tensors)
    for (Index at = 0; at < tensor.basis.count; at += tensor.columns)
      fill_basis_row(tensor, at / tensor.columns, bases + tensor.basis.begin + at);
}

/// The bases with which a run begins.
inline std::vector<float> first_bases(const CompressionLayout& layout) {
  std::vector<float> bases(static_cast<std::size_t>(layout.basis_floats), 0.0F);
  fill_first_bases(layout, bases.data());
  return bases;
}

}  // namespace convoy
