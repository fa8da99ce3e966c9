// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/dropout.hpp"

#include "backend/cuda/kernels/division.cuh"
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"
#include "backend/rules/dropout.hpp"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;

/// A row of blocks a sample.
template <class T>
__global__ void __launch_bounds__(threads) dropout_kernel(DropoutPass pass, DropoutRule rule) {
  await_previous();
  const Index i = static_cast<Index>(blockIdx.x) * threads + threadIdx.x, count = pass.pixels * pass.stored_channels;
  if (i >= count) return;
  const Divided place = divided(i, pass.stored_channels);
  const Index sample = blockIdx.y, pixel = place.quotient, c = place.rest;
  const T* const x = static_cast<const T*>(pass.x) + sample * count;
  float value = Element<T>::up(x[i]);
  if (c < pass.channels) {
    const std::uint64_t key =
        dropout_sample_key(dropout_key(pass.step->seed, pass.step->step, pass.node), pass.rows[sample].position);
    value *= rule.factor(key, c * pass.pixels + pixel);
  }
  static_cast<T*>(pass.y)[sample * count + i] = Element<T>::down(value);
}

}  // namespace

cudaError_t dropout(const DropoutPass& pass, cudaStream_t stream) {
  dim3 grid = grid_over(pass.pixels * pass.stored_channels, threads);
  grid.y = static_cast<unsigned>(pass.n);
  return with_storage(pass.storage, [&](auto tag) {
    return launch(dropout_kernel<typename decltype(tag)::type>, grid, threads, 0, stream, pass,
                  DropoutRule::of(pass.rate));
  });
}

}  // namespace convoy::cuda
