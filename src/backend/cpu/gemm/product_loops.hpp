// SPDX-License-Identifier: Apache-2.0
// The matrix products of convolutions: one for each point of Winograd's algorithm, or for each tap of a filter.
#pragma once
#include "backend/cpu/gemm/panel_form.hpp"
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

/// Matrix products of `points` points. `filters`: [result block][source channel][16]. `source` and `result`: as their
/// PanelForm. Results are floats, but for what filter_gradients reads, which is like the source.
struct Product {
  std::int64_t points = 1;
  void* filters = nullptr;
  std::int64_t filter_plane = 0;  ///< numbers from one point to the next
  const void* source = nullptr;
  void* result = nullptr;
  std::int64_t source_channels = 0;
  std::int64_t result_channels = 0;  ///< that the tensor stores; filter gradients past them keep their values
  std::int64_t result_blocks = 0, source_plane = 0, result_plane = 0;
  std::int64_t capacity = 0, tiles = 0;  ///< or pixels
  // Of filter_gradients:
  bool add = false;         ///< to what is there
  std::int64_t chain = 0;   ///< tiles whose products are added in one chain in fp32; an even number if bf16
  std::int64_t pieces = 1;  ///< that the source's channels are split into; each is one unit of work
};

/// All work on the units [begin, end), each a result of its own.
struct ProductKernels {
  /// result = filters x source: units of product_units().
  void (*multiply)(const Product&, std::int64_t begin, std::int64_t end);
  /// filters = source x result over the tiles: units of gradient_units().
  void (*filter_gradients)(const Product&, std::int64_t begin, std::int64_t end);
  /// The same with sources and filters as PanelForm::bf16, and as PanelForm::bf16_pairs: sums of fp32. Null without the
  /// instruction.
  void (*multiply_bf16)(const Product&, std::int64_t begin, std::int64_t end);
  void (*filter_gradients_bf16)(const Product&, std::int64_t begin, std::int64_t end);
};

/// Units of a product: pairs of result blocks, for each point.
inline std::int64_t product_units(const Product& p) { return p.points * ((p.result_blocks + 1) / 2); }
inline std::int64_t gradient_units(const Product& p) { return product_units(p) * p.pieces; }

}  // namespace convoy::cpu
