// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/orthogonal.hpp"

#include "backend/cuda/kernels/block_sum.cuh"

namespace convoy::cuda {
namespace {

constexpr int threads = 128, own_rows = 8, own_columns = 4;
static_assert(own_rows * own_columns * threads == product_tile * product_tile);
/// Floats from one line of shared memory to the next: 4 more than a tile has, so that fewer of a warp's transposing
/// stores meet in one bank.
constexpr int line_floats = product_tile + 4;
using Strip = float[product_depth][line_floats];

/// How the terms of an operand lie in memory: its 64 rows (of a left operand; columns of a right one) are strides
/// apart, or its terms are.
enum class Terms : unsigned char { neighbours, apart };

/// 64 rows of an operand, product_depth terms at a time: memory, 8 floats in registers of each thread, shared memory.
template <Terms terms>
struct Operand {
  const float* from;  ///< the first term of the first row
  Index stride;
  float scale;
  float4 held[2];

  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }
  /// The first of the 4 neighbours that the thread has, twice: its line and its place in the line, as they lie in
  /// memory.
  static __device__ __forceinline__ int line(int i) {
    return terms == Terms::neighbours ? thread() / 4 + 32 * i : thread() / 16 + 8 * i;
  }
  static __device__ __forceinline__ int place() {
    return 4 * (terms == Terms::neighbours ? thread() % 4 : thread() % 16);
  }
  __device__ __forceinline__ void fetch(int term) {
    const float* const at = terms == Terms::neighbours ? from + term : from + term * stride;
#pragma unroll
    for (int i = 0; i < 2; ++i) held[i] = *reinterpret_cast<const float4*>(at + line(i) * stride + place());
  }
  __device__ __forceinline__ void put(Strip& to) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 v = make_float4(scale * held[i].x, scale * held[i].y, scale * held[i].z, scale * held[i].w);
      if constexpr (terms == Terms::neighbours) {
        to[place()][line(i)] = v.x;
        to[place() + 1][line(i)] = v.y;
        to[place() + 2][line(i)] = v.z;
        to[place() + 3][line(i)] = v.w;
      } else {
        *reinterpret_cast<float4*>(&to[line(i)][place()]) = v;
      }
    }
  }
};

/// Where a thread's 8 x 4 results begin in a tile. The threads of a warp have 32 x 32 of them, so that what they read
/// of a line of shared memory are 128 bytes of each operand.
struct Own {
  int row, column;
  __device__ __forceinline__ Own() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    row = own_rows * (warp / 2 * 4 + lane / 8);
    column = own_columns * (warp % 2 * 8 + lane % 8);
  }
};

using Sums = float[own_rows][own_columns];

__device__ __forceinline__ void add_products(const Strip& left, const Strip& right, const Own& own, Sums& sums) {
#pragma unroll
  for (int term = 0; term < product_depth; ++term) {
    const float4 a0 = *reinterpret_cast<const float4*>(&left[term][own.row]),
                 a1 = *reinterpret_cast<const float4*>(&left[term][own.row + 4]),
                 b0 = *reinterpret_cast<const float4*>(&right[term][own.column]);
    const float a[own_rows] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w},
                b[own_columns] = {b0.x, b0.y, b0.z, b0.w};
#pragma unroll
    for (int r = 0; r < own_rows; ++r)
#pragma unroll
      for (int c = 0; c < own_columns; ++c) sums[r][c] += a[r] * b[c];
  }
}

/// The thread's results of a tile of left * right, with `inner` terms (a multiple of product_depth). The next terms are
/// on their way while it multiplies. All threads of the block call it.
template <Terms terms>
__device__ __forceinline__ void multiply(Operand<terms> left, Operand<terms> right, int inner, const Own& own,
                                         Sums& sums) {
  alignas(16) __shared__ Strip strips[2][2];
#pragma unroll
  for (int r = 0; r < own_rows; ++r)
#pragma unroll
    for (int c = 0; c < own_columns; ++c) sums[r][c] = 0;
  left.fetch(0);
  right.fetch(0);
  left.put(strips[0][0]);
  right.put(strips[0][1]);
  __syncthreads();
  int now = 0;
  for (int term = product_depth; term <= inner; term += product_depth) {
    const bool more = term < inner;
    if (more) {
      left.fetch(term);
      right.fetch(term);
    }
    add_products(strips[now][0], strips[now][1], own, sums);
    now = 1 - now;
    if (more) {
      left.put(strips[now][0]);
      right.put(strips[now][1]);
    }
    __syncthreads();
  }
}

__device__ __forceinline__ int whole_depths(int n) { return (n + product_depth - 1) / product_depth * product_depth; }
__device__ __forceinline__ int shorter(const UpdateMatrix& m) { return m.is_tall() ? m.columns : m.rows; }
__device__ __forceinline__ int longer(const UpdateMatrix& m) { return m.is_tall() ? m.rows : m.columns; }

/// For each matrix 1 over its norm, one block each.
__global__ void __launch_bounds__(threads) factors_kernel(OrthogonalArgs args) {
  await_previous();
  if (*args.apply == 0) return;
  const UpdateMatrix matrix = args.matrices[blockIdx.x];
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < matrix.piece_count; i += threads)
    sum += args.squares[matrix.first_piece + i];
  sum = block_sum<threads>(sum);
  if (threadIdx.x == 0) args.factors[blockIdx.x] = static_cast<float>(1 / fmax(sqrt(sum), Muon::least_norm));
}

/// to = X X^T, or b G + c G G of a symmetric G.
struct SquareProduct {
  const float *x = nullptr, *gram = nullptr;  ///< one of them
  float* to = nullptr;
  const float* factors = nullptr;  ///< x is first multiplied by its matrix's; null: by 1
};

/// The result is symmetric to the last bit: a tile below the diagonal is also written across it.
__global__ void __launch_bounds__(threads) square_kernel(OrthogonalArgs args, SquareProduct product) {
  await_previous();
  if (*args.apply == 0) return;
  const ProductTile tile = args.square_tiles[blockIdx.x];
  const UpdateMatrix matrix = args.matrices[tile.matrix];
  const bool of_x = product.x != nullptr;
  const Index stride = of_x ? matrix.length : matrix.side;
  const float* const from = of_x ? product.x + matrix.x : product.gram + matrix.square;
  const float scale = product.factors != nullptr ? product.factors[tile.matrix] : 1.0F;
  const Own own;
  Sums sums;
  multiply<Terms::neighbours>({from + tile.row * product_tile * stride, stride, scale, {}},
                              {from + tile.column * product_tile * stride, stride, scale, {}},
                              whole_depths(of_x ? longer(matrix) : shorter(matrix)), own, sums);
  const Index row = tile.row * product_tile + own.row, column = tile.column * product_tile + own.column;
  if (!of_x) {
#pragma unroll
    for (int r = 0; r < own_rows; ++r) {
      const float4 g = *reinterpret_cast<const float4*>(from + (row + r) * stride + column);
      sums[r][0] = Muon::c * sums[r][0] + Muon::b * g.x;
      sums[r][1] = Muon::c * sums[r][1] + Muon::b * g.y;
      sums[r][2] = Muon::c * sums[r][2] + Muon::b * g.z;
      sums[r][3] = Muon::c * sums[r][3] + Muon::b * g.w;
    }
  }
  float* const to = product.to + matrix.square;
#pragma unroll
  for (int r = 0; r < own_rows; ++r)
    *reinterpret_cast<float4*>(to + (row + r) * matrix.side + column) =
        make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
  if (tile.row == tile.column) return;
#pragma unroll
  for (int c = 0; c < own_columns; ++c) {
    auto* const across = reinterpret_cast<float4*>(to + (column + c) * matrix.side + row);
    across[0] = make_float4(sums[0][c], sums[1][c], sums[2][c], sums[3][c]);
    across[1] = make_float4(sums[4][c], sums[5][c], sums[6][c], sums[7][c]);
  }
}

/// to = a X + P X of a symmetric P. `factors`: as in SquareProduct.
__global__ void __launch_bounds__(threads)
    step_kernel(OrthogonalArgs args, const float* x, const float* factors, float* to) {
  await_previous();
  if (*args.apply == 0) return;
  const ProductTile tile = args.tiles[blockIdx.x];
  const UpdateMatrix matrix = args.matrices[tile.matrix];
  const float scale = factors != nullptr ? factors[tile.matrix] : 1.0F;
  const float *const p = args.polynomial + matrix.square, *const from = x + matrix.x;
  const Own own;
  Sums sums;
  multiply<Terms::apart>({p + tile.row * product_tile, matrix.side, 1.0F, {}},
                         {from + tile.column * product_tile, matrix.length, scale, {}}, whole_depths(shorter(matrix)),
                         own, sums);
  const Index first =
      static_cast<Index>(tile.row * product_tile + own.row) * matrix.length + tile.column * product_tile + own.column;
#pragma unroll
  for (int r = 0; r < own_rows; ++r) {
    const Index at = first + static_cast<Index>(r) * matrix.length;
    const float4 v = *reinterpret_cast<const float4*>(from + at);
    *reinterpret_cast<float4*>(to + matrix.x + at) =
        make_float4(Muon::a * (scale * v.x) + sums[r][0], Muon::a * (scale * v.y) + sums[r][1],
                    Muon::a * (scale * v.z) + sums[r][2], Muon::a * (scale * v.w) + sums[r][3]);
  }
}

}  // namespace

cudaError_t orthogonalise(const OrthogonalArgs& args, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  const auto blocks = [](int n) { return static_cast<unsigned>(n); };
  cudaError_t result = launch(factors_kernel, blocks(args.count), threads, 0, stream, args);
  const float* factors = args.factors;
  for (int i = 0; i < Muon::iterations; ++i) {
    const float* const x = args.x[i % 2];
    const SquareProduct gram{x, nullptr, args.gram, factors}, polynomial{nullptr, args.gram, args.polynomial, nullptr};
    for (const SquareProduct& product : {gram, polynomial})
      if (result == cudaSuccess)
        result = launch(square_kernel, blocks(args.square_count), threads, 0, stream, args, product);
    if (result == cudaSuccess)
      result = launch(step_kernel, blocks(args.tile_count), threads, 0, stream, args, x, factors, args.x[(i + 1) % 2]);
    factors = nullptr;
  }
  return result;
}

}  // namespace convoy::cuda
