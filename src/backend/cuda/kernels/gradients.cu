// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/gradients.hpp"

#include "backend/cuda/kernels/finite.cuh"
#include "backend/cuda/kernels/meeting.cuh"
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/update.hpp"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;

/// Turns [k][rs][c] into [k][c][rs] through shared memory, so that both sides are accessed in lines. Returns whether a
/// gradient of this thread isn't finite.
template <class T>
__device__ __forceinline__ bool turn_filter(const GradientCollection& all, const GradientPiece& piece, float* values) {
  const T* const from = reinterpret_cast<const T*>(all.arena + piece.from);
  const float unscale = all.loss_scale != nullptr ? 1 / *all.loss_scale : 1;
  const int line = piece.channels * piece.rs, count = piece.ks * line;
  bool bad = false;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
    const int c = i % piece.channels, row = i / piece.channels, s = row % piece.rs, k = row / piece.rs;
    const float value = Element<T>::up(from[static_cast<Index>(row) * piece.stored_c + c]) * unscale;
    bad = bad || not_finite(value);
    values[k * line + c * piece.rs + s] = value;
  }
  __syncthreads();
  float* const to = all.gradients + piece.begin;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) to[i] = values[i];
  return bad;
}

/// One block per piece.
template <class T>
__global__ void __launch_bounds__(threads) collect_kernel(GradientCollection all) {
  await_previous();
  __shared__ float values[piece_elements];
  const GradientPiece piece = all.pieces[blockIdx.x];
  float* const to = all.gradients + piece.begin;
  const int count = piece.ks * piece.channels * piece.rs;
  bool bad = false;
  if (piece.from >= 0) {
    bad = turn_filter<T>(all, piece, values);
  } else if (piece.from == GradientPiece::unwritten) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) to[i] = 0;
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) bad = bad || not_finite(to[i]);
  }
  if (bad) atomicMin(all.worst, all.stage);
  if (all.flags == nullptr || !comes_last(all.arrivals, gridDim.x) || threadIdx.x != 0) return;
  const std::int32_t stage = __ldcg(all.worst);
  all.flags[all.feed->replica] = stage == no_stage ? 0.0F : static_cast<float>(stage + 1);
  *all.worst = no_stage;
}

}  // namespace

cudaError_t collect_gradients(const GradientCollection& collection, cudaStream_t stream) {
  if (collection.count <= 0) return cudaSuccess;
  return with_storage(collection.storage, [&](auto tag) {
    return launch(collect_kernel<typename decltype(tag)::type>, static_cast<unsigned>(collection.count), threads, 0,
                  stream, collection);
  });
}

}  // namespace convoy::cuda
