// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/update.hpp"

#include <tuple>
#include <utility>

#include "backend/cuda/kernels/block_sum.cuh"
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"
#include "backend/rules/moving_average.hpp"
#include "optim/clip.hpp"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;
// Limits of a dynamic loss scale, as torch.amp.GradScaler's growth and backoff by 2; past the upper one float16's
// largest number would be exceeded by any loss.
constexpr float lowest_scale = 1, highest_scale = 16777216;

__device__ __forceinline__ int elements_of(const UpdatePiece& piece) { return piece.ks * piece.channels * piece.rs; }

/// Writes the piece's copy from its values in shared memory: [k][c][rs] becomes [k][rs][c].
template <class T>
__device__ __forceinline__ void write_copy(const UpdatePiece& piece, const float* values, T* copies) {
  __syncthreads();
  const int line = piece.channels * piece.rs;
  for (int i = static_cast<int>(threadIdx.x); i < elements_of(piece); i += threads) {
    const int k = i / line, s = i % line / piece.channels, c = i % piece.channels;
    copies[piece.copy + (static_cast<Index>(k) * piece.rs + s) * piece.stored_c + c] =
        Element<T>::down(values[k * line + c * piece.rs + s]);
  }
}

/// 0, 1, ... for the slots of a rule. (Device code can't call size().)
template <class R>
using SlotsOf = std::make_index_sequence<std::tuple_size<decltype(R::slots)>::value>;

/// Returns the new weight at an element, and updates its slots.
template <class R, std::size_t... I>
__device__ __forceinline__ float update_one(const UpdateArgs& args, const UpdateFactors& factors, Index at,
                                            std::index_sequence<I...>) {
  [[maybe_unused]] float* const slots = args.slots + at;
  float slot[sizeof...(I) + 1] = {slots[static_cast<Index>(I) * args.slot_floats]...};
  const float w = R::update(factors, args.values[at], args.gradients[at], slot[I]...);
  ((slots[static_cast<Index>(I) * args.slot_floats] = slot[I]), ...);
  return w;
}

__device__ __forceinline__ UpdateFactors factors_of(const UpdateArgs& args, const UpdatePiece& piece) {
  const float multiplier = args.step->step < piece.rate_ends ? piece.rate_multiplier : 0.0F;
  UpdateFactors factors{args.step->learning_rate * multiplier, piece.decay, args.verdict->clip, {}};
  for (int i = 0; i < max_rule_numbers; ++i) factors.numbers[i] = args.verdict->numbers[i];
  return factors;
}

template <class R, std::size_t... I>
__device__ __forceinline__ float measure_one(const UpdateArgs& args, const UpdateFactors& factors, Index at,
                                             std::index_sequence<I...>) {
  return R::measured(factors, args.values[at], args.gradients[at],
                     args.slots[at + static_cast<Index>(I) * args.slot_floats]...);
}

template <class R>
__global__ void __launch_bounds__(threads) norms_kernel(UpdateArgs args) {
  await_previous();
  if (args.verdict->apply == 0) return;
  const UpdatePiece piece = args.pieces[blockIdx.x];
  if (piece.trains == 0) return;
  const UpdateFactors factors = factors_of(args, piece);
  double weight = 0, measured = 0;
  for (int i = static_cast<int>(threadIdx.x); i < elements_of(piece); i += threads) {
    const auto w = static_cast<double>(args.values[piece.begin + i]);
    const auto d = static_cast<double>(measure_one<R>(args, factors, piece.begin + i, SlotsOf<R>()));
    weight += w * w;
    measured += d * d;
  }
  weight = block_sum<threads>(weight);
  measured = block_sum<threads>(measured);
  if (threadIdx.x == 0) args.norms[blockIdx.x] = {weight, measured};
}

/// Where the elements of a piece of a matrix lie among the gathered.
struct Gathered {
  UpdateMatrix matrix;
  std::int32_t row, column;  ///< of the piece's first element
  __device__ __forceinline__ Gathered(const UpdateArgs& args, const UpdatePiece& piece)
      : matrix(args.matrices[piece.matrix]),
        row(static_cast<std::int32_t>((piece.begin - matrix.begin) / matrix.columns)),
        column(static_cast<std::int32_t>((piece.begin - matrix.begin) % matrix.columns)) {}
  __device__ __forceinline__ Index place(int i) const {
    const auto from_column = static_cast<unsigned>(column) + static_cast<unsigned>(i),
               columns = static_cast<unsigned>(matrix.columns);
    return matrix.place(row + static_cast<std::int32_t>(from_column / columns),
                        static_cast<std::int32_t>(from_column % columns));
  }
};

template <class R, std::size_t... I>
__device__ __forceinline__ float gather_one(const UpdateArgs& args, const UpdateFactors& factors, Index at,
                                            std::index_sequence<I...>) {
  return R::gathered(factors, args.gradients[at], args.slots[at + static_cast<Index>(I) * args.slot_floats]...);
}

template <class R>
__global__ void __launch_bounds__(threads) gather_kernel(UpdateArgs args, double* squares) {
  await_previous();
  if (args.verdict->apply == 0) return;
  const UpdatePiece piece = args.pieces[blockIdx.x];
  if (piece.matrix < 0) return;
  const UpdateFactors factors = factors_of(args, piece);
  const Gathered gathered(args, piece);
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < elements_of(piece); i += threads) {
    const float x = gather_one<R>(args, factors, piece.begin + i, SlotsOf<R>());
    args.gathered[gathered.place(i)] = x;
    sum += static_cast<double>(x) * static_cast<double>(x);
  }
  sum = block_sum<threads>(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

/// All threads of a block call it. Each block of a tensor sums all of the tensor's pieces, in the same order.
template <class R>
__device__ __forceinline__ float ratio_of(const UpdateArgs& args, const UpdatePiece& piece, const float* numbers) {
  double weight = 0, measured = 0;
  for (int i = static_cast<int>(threadIdx.x); i < piece.piece_count; i += threads) {
    weight += args.norms[piece.first_piece + i].weight;
    measured += args.norms[piece.first_piece + i].measured;
  }
  weight = block_sum<threads>(weight);
  measured = block_sum<threads>(measured);
  return static_cast<float>(R::ratio(numbers, {sqrt(weight), sqrt(measured), piece.decay, piece.is_weight != 0}));
}

__device__ __forceinline__ void fold_statistics(const UpdateArgs& args, const NormFold& fold) {
  for (Index i = fold.begin + threadIdx.x; i < fold.begin + fold.count; i += threads)
    args.running[i] = fold_statistic(args.running[i], args.tail[i], fold.momentum);
}

/// The new weights of a piece of a matrix, also in shared memory.
template <class R>
__device__ __forceinline__ void update_matrix(const UpdateArgs& args, const UpdatePiece& piece, UpdateFactors factors,
                                              float* values) {
  const Gathered gathered(args, piece);
  factors.ratio = static_cast<float>(R::matrix_ratio(factors.numbers, static_cast<double>(gathered.matrix.rows),
                                                     static_cast<double>(gathered.matrix.columns)));
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < elements_of(piece); i += threads) {
    const Index at = piece.begin + i;
    const float w = R::matrix_update(factors, args.values[at], args.gathered[gathered.place(i)]);
    args.values[at] = w;
    values[i] = w;
  }
}

/// Each block updates one piece; those behind fold statistics.
template <class R, class T>
__global__ void __launch_bounds__(threads) update_kernel(UpdateArgs args) {
  await_previous();
  __shared__ float values[piece_elements];
  if (args.verdict->apply == 0) return;
  const int block = static_cast<int>(blockIdx.x);
  if (block >= args.count) return fold_statistics(args, args.folds[block - args.count]);
  const UpdatePiece piece = args.pieces[block];
  if (piece.trains == 0) return;
  UpdateFactors factors = factors_of(args, piece);
  if constexpr (is_layerwise<R>) factors.ratio = ratio_of<R>(args, piece, factors.numbers);
  bool updated = false;
  if constexpr (is_matrix_rule<R>) {
    updated = piece.matrix >= 0;
    if (updated) update_matrix<R>(args, piece, factors, values);
  }
  const int count = updated ? 0 : elements_of(piece);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
    const Index at = piece.begin + i;
    const float w = update_one<R>(args, factors, at, SlotsOf<R>());
    args.values[at] = w;
    values[i] = w;
  }
  if (piece.copy >= 0 && args.copies != nullptr) write_copy(piece, values, static_cast<T*>(args.copies));
}

template <class T>
__global__ void __launch_bounds__(threads) refresh_kernel(UpdateArgs args) {
  await_previous();
  __shared__ float values[piece_elements];
  const UpdatePiece piece = args.pieces[blockIdx.x];
  if (piece.copy < 0) return;
  for (int i = static_cast<int>(threadIdx.x); i < elements_of(piece); i += threads)
    values[i] = args.values[piece.begin + i];
  write_copy(piece, values, static_cast<T*>(args.copies));
}

__global__ void __launch_bounds__(threads) squares_kernel(UpdateArgs args, double* squares) {
  await_previous();
  const UpdatePiece piece = args.pieces[blockIdx.x];
  double sum = 0;
  if (piece.trains != 0) {
    for (int i = static_cast<int>(threadIdx.x); i < elements_of(piece); i += threads) {
      const auto g = static_cast<double>(args.gradients[piece.begin + i]);
      sum += g * g;
    }
  }
  sum = block_sum<threads>(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

/// Flags hold 1 + the first stage that wasn't finite. The worst replica is the one where it began: the lowest flag,
/// then the lowest replica.
struct Flagged {
  float flag;
  int replica;  ///< -1: none
};
__device__ __forceinline__ bool before(const Flagged& a, const Flagged& b) {
  if (a.replica < 0 || b.replica < 0) return b.replica < 0 && a.replica >= 0;
  return a.flag < b.flag || (a.flag == b.flag && a.replica < b.replica);
}

__device__ __forceinline__ int worst_replica(const float* flags, int replicas) {
  __shared__ Flagged found[threads];
  Flagged mine{0, -1};
  for (int i = static_cast<int>(threadIdx.x); i < replicas; i += threads) {
    if (flags[i] == 0) continue;
    const Flagged one{flags[i] == flags[i] ? flags[i] : 3e38F, i};
    if (before(one, mine)) mine = one;
  }
  found[threadIdx.x] = mine;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    const int i = static_cast<int>(threadIdx.x);
    if (i < half && before(found[i + half], found[i])) found[i] = found[i + half];
  }
  __syncthreads();
  return found[0].replica;
}

/// Halves a dynamic loss scale; the replica is reported once that no longer helps.
__device__ __forceinline__ void skip(const Decision& d, int replica) {
  d.state->skipped += 1;
  ++d.counters->skipped;
  if (d.grow_every > 0 && d.state->loss_scale > lowest_scale) {
    d.state->loss_scale = fmaxf(d.state->loss_scale / 2, lowest_scale);
    d.state->good_steps = 0;
    return;
  }
  std::int32_t& bad = d.counters->bad_replica;
  if (bad < 0 || replica < bad) bad = replica;
}

__device__ __forceinline__ void count_applied(const Decision& d) {
  d.state->applied += 1;
  if (d.grow_every <= 0) return;
  d.state->good_steps += 1;
  if (d.state->good_steps < d.grow_every) return;
  d.state->good_steps = 0;
  d.state->loss_scale = fminf(d.state->loss_scale * 2, highest_scale);
}

template <class R>
__global__ void __launch_bounds__(threads) decide_kernel(Decision d) {
  await_previous();
  const int bad = worst_replica(d.flags, d.replicas);
  double sum = 0;
  if (d.squares != nullptr) {
    for (int i = static_cast<int>(threadIdx.x); i < d.pieces; i += threads) sum += d.squares[i];
    sum = block_sum<threads>(sum);
  }
  if (threadIdx.x != 0) return;
  d.verdict->apply = bad < 0 ? 1 : 0;
  d.verdict->clip =
      d.squares != nullptr ? static_cast<float>(clip_factor(sqrt(sum), static_cast<double>(d.clip_norm))) : 1.0F;
  if (bad >= 0) {
    skip(d, bad);
    return;
  }
  count_applied(d);
  const double step = static_cast<double>(d.state->applied) - static_cast<double>(d.state->slots_zeroed);
  R::prepare(d.step->options, step, d.verdict->numbers);
}

}  // namespace

cudaError_t piece_squares(const UpdateArgs& args, double* squares, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  return launch(squares_kernel, static_cast<unsigned>(args.count), threads, 0, stream, args, squares);
}

cudaError_t decide_update(Rule rule, const Decision& decision, cudaStream_t stream) {
  return with_optimiser(
      rule, [&](auto chosen) { return launch(decide_kernel<decltype(chosen)>, 1, threads, 0, stream, decision); });
}

cudaError_t piece_norms(Rule rule, const UpdateArgs& args, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  return with_optimiser(rule, [&](auto chosen) {
    using R = decltype(chosen);
    if constexpr (is_layerwise<R>) {
      return launch(norms_kernel<R>, static_cast<unsigned>(args.count), threads, 0, stream, args);
    } else {
      return cudaSuccess;
    }
  });
}

cudaError_t gather_matrices(Rule rule, const UpdateArgs& args, double* squares, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  return with_optimiser(rule, [&](auto chosen) {
    using R = decltype(chosen);
    if constexpr (is_matrix_rule<R>) {
      return launch(gather_kernel<R>, static_cast<unsigned>(args.count), threads, 0, stream, args, squares);
    } else {
      return cudaSuccess;
    }
  });
}

cudaError_t update(Rule rule, const UpdateArgs& args, cudaStream_t stream) {
  const int blocks = args.count + args.fold_count;
  if (blocks == 0) return cudaSuccess;
  return with_optimiser(rule, [&](auto chosen) {
    using R = decltype(chosen);
    return with_storage(args.storage, [&](auto tag) {
      return launch(update_kernel<R, typename decltype(tag)::type>, static_cast<unsigned>(blocks), threads, 0, stream,
                    args);
    });
  });
}

cudaError_t refresh_copies(const UpdateArgs& args, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  return with_storage(args.storage, [&](auto tag) {
    return launch(refresh_kernel<typename decltype(tag)::type>, static_cast<unsigned>(args.count), threads, 0, stream,
                  args);
  });
}

}  // namespace convoy::cuda
