// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/update.hpp"

#include "backend/cuda/kernels/block_sum.cuh"
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"
#include "backend/rules/update.hpp"

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

/// A block a piece.
template <class Formula, class T>
__global__ void __launch_bounds__(threads) update_kernel(UpdateArgs args) {
  __shared__ float values[piece_elements];
  if (args.verdict->apply == 0) return;
  const UpdatePiece piece = args.pieces[blockIdx.x];
  if (piece.trains == 0) return;
  const UpdateFactors factors{args.step->rate * piece.rate_multiplier, args.step->momentum, piece.decay,
                              args.verdict->clip};
  const int count = elements_of(piece);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
    const Index at = piece.begin + i;
    float velocity = 0;
    if constexpr (Formula::slots > 0) velocity = args.velocity[at];
    const float w = Formula::step(factors, args.values[at], args.gradients[at], velocity);
    args.values[at] = w;
    if constexpr (Formula::slots > 0) args.velocity[at] = velocity;
    values[i] = w;
  }
  if (piece.copy >= 0 && args.copies != nullptr) write_copy(piece, values, static_cast<T*>(args.copies));
}

template <class T>
__global__ void __launch_bounds__(threads) refresh_kernel(UpdateArgs args) {
  __shared__ float values[piece_elements];
  const UpdatePiece piece = args.pieces[blockIdx.x];
  if (piece.copy < 0) return;
  for (int i = static_cast<int>(threadIdx.x); i < elements_of(piece); i += threads)
    values[i] = args.values[piece.begin + i];
  write_copy(piece, values, static_cast<T*>(args.copies));
}

__global__ void __launch_bounds__(threads) squares_kernel(UpdateArgs args, double* squares) {
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
  d.state[3] += 1;
  ++d.tally->skipped;
  if (d.grow_every > 0 && d.state[0] > lowest_scale) {
    d.state[0] = fmaxf(d.state[0] / 2, lowest_scale);
    d.state[1] = 0;
    return;
  }
  std::int32_t& bad = d.tally->bad_replica;
  if (bad < 0 || replica < bad) bad = replica;
}

__device__ __forceinline__ void count_applied(const Decision& d) {
  d.state[2] += 1;
  if (d.grow_every <= 0) return;
  d.state[1] += 1;
  if (d.state[1] < d.grow_every) return;
  d.state[1] = 0;
  d.state[0] = fminf(d.state[0] * 2, highest_scale);
}

__global__ void __launch_bounds__(threads) decide_kernel(Decision d) {
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
  } else {
    count_applied(d);
  }
}

__global__ void __launch_bounds__(threads)
    fold_kernel(float* running, const float* tail, const NormFold* folds, const UpdateVerdict* verdict) {
  if (verdict->apply == 0) return;
  const NormFold fold = folds[blockIdx.x];
  for (Index i = fold.begin + threadIdx.x; i < fold.begin + fold.count; i += threads)
    running[i] = fold_statistic(running[i], tail[i], fold.momentum);
}

template <class Formula>
cudaError_t update_by(const UpdateArgs& args, cudaStream_t stream) {
  return with_storage(args.storage, [&](auto tag) {
    return launch(update_kernel<Formula, typename decltype(tag)::type>, static_cast<unsigned>(args.count), threads, 0,
                  stream, args);
  });
}

}  // namespace

cudaError_t piece_squares(const UpdateArgs& args, double* squares, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  return launch(squares_kernel, static_cast<unsigned>(args.count), threads, 0, stream, args, squares);
}

cudaError_t decide_update(const Decision& decision, cudaStream_t stream) {
  return launch(decide_kernel, 1, threads, 0, stream, decision);
}

cudaError_t update(UpdateRule rule, const UpdateArgs& args, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  switch (rule) {
    case UpdateRule::sgd:
      return update_by<SgdRule>(args, stream);
    case UpdateRule::momentum:
      return update_by<MomentumRule>(args, stream);
    case UpdateRule::nesterov:
      break;
  }
  return update_by<NesterovRule>(args, stream);
}

cudaError_t fold_norms(float* running, const float* tail, const NormFold* folds, int count,
                       const UpdateVerdict* verdict, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(fold_kernel, static_cast<unsigned>(count), threads, 0, stream, running, tail, folds, verdict);
}

cudaError_t refresh_copies(const UpdateArgs& args, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  return with_storage(args.storage, [&](auto tag) {
    return launch(refresh_kernel<typename decltype(tag)::type>, static_cast<unsigned>(args.count), threads, 0, stream,
                  args);
  });
}

}  // namespace convoy::cuda
