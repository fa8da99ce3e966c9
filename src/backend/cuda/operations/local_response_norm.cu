// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/local_response_norm.hpp"

#include "backend/cuda/kernels/pack.cuh"
#include "backend/rules/local_response.hpp"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;

/// Sum of values[begin, end) as far as they lie within [0, channels).
__device__ __forceinline__ float window_sum(const float* values, int begin, int end, int channels) {
  float sum = 0;
  for (int c = max(begin, 0); c < min(end, channels); ++c) sum += values[c];
  return sum;
}

/// A block a row. Shared: channels floats.
template <class T>
__global__ void __launch_bounds__(threads) response_kernel(LocalResponseRule rule, int channels, const T* x, T* y) {
  await_previous();
  DYNAMIC_SHARED(float, squares);
  const Index row = static_cast<Index>(blockIdx.x) * channels;
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += threads) {
    const float value = Element<T>::up(x[row + c]);
    squares[c] = value * value;
  }
  __syncthreads();
  const int before = static_cast<int>(rule.before()), after = static_cast<int>(rule.after());
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += threads) {
    const float factor = rule.factor(window_sum(squares, c - before, c + after + 1, channels));
    y[row + c] = Element<T>::down(Element<T>::up(x[row + c]) * factor);
  }
}

/// Shared: squares, then t of the rule.
template <class T>
__global__ void __launch_bounds__(threads)
    response_backward_kernel(LocalResponseRule rule, int channels, const T* x, const T* dy, T* dx) {
  await_previous();
  DYNAMIC_SHARED(float, squares);
  float* const t = squares + channels;
  const Index row = static_cast<Index>(blockIdx.x) * channels;
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += threads) {
    const float value = Element<T>::up(x[row + c]);
    squares[c] = value * value;
  }
  __syncthreads();
  const int before = static_cast<int>(rule.before()), after = static_cast<int>(rule.after());
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += threads) {
    const float sum = window_sum(squares, c - before, c + after + 1, channels);
    t[c] = Element<T>::up(dy[row + c]) * Element<T>::up(x[row + c]) * rule.factor(sum) / rule.base(sum);
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += threads) {
    const float factor = rule.factor(window_sum(squares, c - before, c + after + 1, channels));
    const float coupled = window_sum(t, c - after, c + before + 1, channels);
    dx[row + c] =
        Element<T>::down(Element<T>::up(dy[row + c]) * factor - rule.coupling() * Element<T>::up(x[row + c]) * coupled);
  }
}

LocalResponseRule rule_of(const LocalResponse& norm) {
  return {norm.size, norm.alpha / static_cast<float>(norm.size), norm.beta, norm.k};
}

}  // namespace

cudaError_t local_response(const LocalResponse& norm, const void* x, void* y, cudaStream_t stream) {
  return with_storage(norm.storage, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(response_kernel<T>, static_cast<unsigned>(norm.rows), threads,
                  static_cast<std::size_t>(norm.channels) * sizeof(float), stream, rule_of(norm),
                  static_cast<int>(norm.channels), static_cast<const T*>(x), static_cast<T*>(y));
  });
}

cudaError_t local_response_backward(const LocalResponse& norm, const void* x, const void* dy, void* dx,
                                    cudaStream_t stream) {
  return with_storage(norm.storage, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(response_backward_kernel<T>, static_cast<unsigned>(norm.rows), threads,
                  static_cast<std::size_t>(norm.channels) * 2 * sizeof(float), stream, rule_of(norm),
                  static_cast<int>(norm.channels), static_cast<const T*>(x), static_cast<const T*>(dy),
                  static_cast<T*>(dx));
  });
}

}  // namespace convoy::cuda
