// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/batch_norm.hpp"

#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/parts.cuh"
#include "backend/cuda/operations/norm_formulas.cuh"
#include "backend/rules/exchanged_sum.hpp"

namespace convoy::cuda {
namespace {

/// A thread sums x - anchor and its square. The anchor moves to the mean so far whenever the rows have doubled, or 32
/// have come, as in backend/cpu/operations/group_loops.cpp, but the squares stay in float. A block adds its threads in
/// double, where the anchors can go.
template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) statistics_kernel(StatisticsReduce reduce) {
  await_previous();
  Floats<Width> anchor = {}, sum = {}, square = {};
  const T* const x = static_cast<const T*>(reduce.x);
  const Index rows = reduce.rows;
  const int channels = static_cast<int>(reduce.channels);
  const int c = own_channel<Width>();
  if (c < channels && first_row() < rows) {
    anchor = load<Width>(x + first_row() * channels + c);
    Index count = 1;
    for (Index row = first_row() + row_stride(); row < rows; row += row_stride()) {
      const Floats<Width> v = load<Width>(x + row * channels + c);
      ++count;
      const bool moves = (count & (count - 1)) == 0 || count % 32 == 0;
      const auto all = static_cast<float>(count);
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        const float distance = v.at[k] - anchor.at[k];
        sum.at[k] += distance;
        square.at[k] = fmaf(distance, distance, square.at[k]);
        if (!moves) continue;
        const float moved = anchor.at[k] + sum.at[k] / all, step = moved - anchor.at[k];
        square.at[k] = fmaf(-step, fmaf(-all, step, 2 * sum.at[k]), square.at[k]);
        sum.at[k] = fmaf(-all, step, sum.at[k]);
        anchor.at[k] = moved;
      }
    }
  }
  DYNAMIC_SHARED(float, tile);
  const int across = static_cast<int>(blockDim.x) * Width, size = across * static_cast<int>(blockDim.y);
  const int at = static_cast<int>(threadIdx.y) * across + static_cast<int>(threadIdx.x) * Width;
#pragma unroll
  for (int k = 0; k < Width; ++k) {
    tile[at + k] = anchor.at[k];
    tile[size + at + k] = sum.at[k];
    tile[2 * size + at + k] = square.at[k];
  }
  __syncthreads();
  const int first = static_cast<int>(blockIdx.y) * across;
  for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < across && first + i < channels;
       i += static_cast<int>(blockDim.x * blockDim.y)) {
    double total[2] = {};
    for (Index y = 0; y < blockDim.y; ++y) {
      const Index begin = static_cast<Index>(blockIdx.x) * blockDim.y + y;
      if (begin >= rows) break;
      const auto count = static_cast<double>((rows - begin + row_stride() - 1) / row_stride());
      const auto around = static_cast<double>(tile[y * across + i]),
                 rest = static_cast<double>(tile[size + y * across + i]);
      total[0] += count * around + rest;
      total[1] += static_cast<double>(tile[2 * size + y * across + i]) + around * (2 * rest + count * around);
    }
    for (int term = 0; term < 2; ++term)
      reduce.place.sums[(static_cast<Index>(blockIdx.x) * 2 + term) * channels + first + i] = total[term];
  }
  add_over_grid<2>(reduce.place, across, channels, [&](int channel, double(&total)[2]) {
    if (reduce.totals != nullptr) {
      for (int term = 0; term < 2; ++term) {
        const auto rounded = static_cast<float>(total[term]);
        float* const to = reduce.totals + static_cast<Index>(term) * channels + channel;
        to[0] = rounded;
        to[2 * channels] = static_cast<float>(total[term] - static_cast<double>(rounded));
      }
    }
    if (reduce.finish.channels == 0) return;
    write_norm<T>(reduce.finish, channel, finish_channel(reduce.finish, channel, total[0], total[1]));
  });
}

/// total: sum and squares of thread y = 0. All threads of the block call it.
template <class T>
__device__ __forceinline__ void recount(const Recount& from, Index channels, int c, bool in_use, double (&total)[2]) {
  if (from.x == nullptr) return;
  __shared__ float anchors[finish_channels];
  __shared__ bool drowned[finish_channels];
  __shared__ double tile[2][finish_parts][finish_channels];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const auto rows = static_cast<double>(from.rows);
  if (y == 0) {
    drowned[x] = in_use && drowns<T>(total[0], total[1], rows);
    anchors[x] = static_cast<float>(total[0] / rows);
  }
  __syncthreads();
  const bool again = drowned[x];
  double sum = 0, square = 0;
  if (again) {
    const T* const at = static_cast<const T*>(from.x) + c;
    for (Index row = y; row < from.rows; row += finish_parts) {
      const auto distance = static_cast<double>(Element<T>::up(at[row * channels]) - anchors[x]);
      sum += distance;
      square += distance * distance;
    }
  }
  tile[0][y][x] = sum;
  tile[1][y][x] = square;
  __syncthreads();
  if (!again || y != 0) return;
  for (int i = 1; i < finish_parts; ++i) {
    sum += tile[0][i][x];
    square += tile[1][i][x];
  }
  const auto anchor = static_cast<double>(anchors[x]);
  total[0] = rows * anchor + sum;
  total[1] = square + anchor * (2 * sum + rows * anchor);
}

template <int Terms, class T>
__global__ void __launch_bounds__(finish_threads) fold_kernel(SumsFold fold) {
  await_previous();
  const int c = own_column();
  const bool in_use = c < fold.channels;
  double total[Terms];
  add_parts<Terms>(fold.sums, c, in_use, total);
  if constexpr (Terms == 2) recount<T>(fold.recount, fold.channels, c, in_use, total);
  if (!in_use || threadIdx.y != 0) return;
#pragma unroll
  for (int t = 0; t < Terms; ++t) {
    if (fold.stride > 0)
      write_parts(total[t], fold.out[t] + c, fold.stride);
    else
      fold.out[t][c] = static_cast<float>(total[t]);
  }
}

struct NormFinishes {
  NormFinish of[most_finished];
};

template <class Low>
__global__ void __launch_bounds__(finish_threads) finish_kernel(NormFinishes finishes) {
  await_previous();
  const NormFinish& finish = finishes.of[blockIdx.y];
  const int c = own_column();
  const bool in_use = c < finish.channels;
  double total[2];
  add_parts<2>(finish.sums, c, in_use, total);
  recount<Low>(finish.recount, finish.channels, c, in_use, total);
  if (in_use && threadIdx.y == 0) write_norm<Low>(finish, c, finish_channel(finish, c, total[0], total[1]));
}

template <class Low>
__global__ void __launch_bounds__(tile_threads) evaluation_kernel(const EvaluationNorm* norms, const float* block) {
  await_previous();
  const EvaluationNorm norm = norms[blockIdx.x];
  for (int c = static_cast<int>(threadIdx.x); c < norm.channels; c += tile_threads) {
    const auto mean = static_cast<double>(block[norm.mean + c]),
               variance = static_cast<double>(block[norm.variance + c]);
    const double scale =
        static_cast<double>(block[norm.gamma + c]) / sqrt(variance + static_cast<double>(norm.epsilon));
    write_scale<Low>(norm.vectors, c, scale, static_cast<double>(block[norm.beta + c]) - mean * scale);
  }
}

/// Sums, then what `gradients` and `finish` want.
template <bool gradients_too, bool factors_too>
__global__ void __launch_bounds__(finish_threads)
    backward_kernel(PartialSums sums, Products products, const float* rstd, Index channels, BackwardFinish finish,
                    NormGradients gradients) {
  await_previous();
  const int c = own_column();
  const bool in_use = c < channels;
  double total[2];
  add_parts<2>(sums, c, in_use, total);
  if (!in_use || threadIdx.y != 0) return;
  const double dgamma = products == Products::centred ? total[1] * static_cast<double>(rstd[c]) : total[1];
  if constexpr (gradients_too) write_gradients(gradients, c, total[0], dgamma);
  if constexpr (factors_too) write_factors(finish, c, total[0], dgamma);
}

}  // namespace

cudaError_t reduce_statistics(const StatisticsReduce& reduce, cudaStream_t stream) {
  const Tiling tiling = tile_reduction(reduce.rows, reduce.channels);
  return with_elements(reduce.storage, reduce.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(statistics_kernel<T, w>, tiling.grid, tiling.block, partial_bytes<w, 3>(tiling), stream, reduce);
  });
}

cudaError_t fold_sums(const SumsFold& fold, cudaStream_t stream) {
  return with_storage(fold.recount.storage, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(fold.terms == 3 ? fold_kernel<3, T> : fold_kernel<2, T>, finish_grid(fold.channels), finish_block(),
                  0, stream, fold);
  });
}

cudaError_t finish_statistics(const NormFinish* finishes, int count, cudaStream_t stream) {
  NormFinishes all;
  Index channels = 0;
  for (int i = 0; i < count; ++i) {
    all.of[i] = finishes[i];
    channels = std::max(channels, finishes[i].channels);
  }
  dim3 grid = finish_grid(channels);
  grid.y = static_cast<unsigned>(count);
  return with_storage(finishes[0].low, [&](auto tag) {
    using Low = typename decltype(tag)::type;
    return launch(finish_kernel<Low>, grid, finish_block(), 0, stream, all);
  });
}

cudaError_t finish_evaluation(const EvaluationNorm* norms, int count, const float* block, Storage low,
                              cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return with_storage(low, [&](auto tag) {
    using Low = typename decltype(tag)::type;
    return launch(evaluation_kernel<Low>, static_cast<unsigned>(count), tile_threads, 0, stream, norms, block);
  });
}

cudaError_t finish_gradients(const NormGradients& gradients, cudaStream_t stream) {
  return launch(backward_kernel<true, false>, finish_grid(gradients.channels), finish_block(), 0, stream,
                gradients.sums, gradients.products, gradients.rstd, gradients.channels, BackwardFinish{}, gradients);
}

cudaError_t finish_backward(const BackwardFinish& finish, cudaStream_t stream) {
  return launch(backward_kernel<false, true>, finish_grid(finish.channels), finish_block(), 0, stream, finish.sums,
                finish.products, finish.vectors.rstd, finish.channels, finish, NormGradients{});
}

cudaError_t finish_backward(const BackwardFinish& finish, const NormGradients& gradients, cudaStream_t stream) {
  return launch(backward_kernel<true, true>, finish_grid(finish.channels), finish_block(), 0, stream, finish.sums,
                finish.products, finish.vectors.rstd, finish.channels, finish, gradients);
}

}  // namespace convoy::cuda
