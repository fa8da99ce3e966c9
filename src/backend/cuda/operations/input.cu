// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/input.hpp"

#include "backend/cuda/kernels/block_sum.cuh"
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;
constexpr int most_channels = 8;

__device__ __forceinline__ const std::uint8_t* image_of(const InputStage& stage, const SampleRow& row) {
  const Index bytes = static_cast<Index>(stage.source_height) * stage.source_width * stage.channels;
  return stage.feed->images + row.sample * bytes;
}

/// The source's line or column that a window shows at `at`.
__device__ __forceinline__ int position(const InputStage& stage, int at, int size) {
  return stage.padding == Padding::reflect ? reflected(at, size) : at;
}

/// moments[sample] = mean and 1 / deviation of the crop, padding included. One block per sample.
__global__ void __launch_bounds__(threads) moments_kernel(InputStage stage) {
  await_previous();
  const SampleRow row = stage.rows[blockIdx.x];
  const std::uint8_t* const image = image_of(stage, row);
  unsigned long long sum = 0, squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < stage.height * stage.width; i += threads) {
    const int y = position(stage, row.y + i / stage.width, stage.source_height),
              x = position(stage, row.x + i % stage.width, stage.source_width);
    if (y < 0 || y >= stage.source_height || x < 0 || x >= stage.source_width) continue;
    const std::uint8_t* const pixel = image + (static_cast<Index>(y) * stage.source_width + x) * stage.channels;
    for (int c = 0; c < stage.channels; ++c) {
      sum += pixel[c];
      squares += static_cast<unsigned>(pixel[c]) * pixel[c];
    }
  }
  sum = block_sum<threads>(sum);
  squares = block_sum<threads>(squares);
  if (threadIdx.x != 0) return;
  const auto count = static_cast<double>(static_cast<Index>(stage.height) * stage.width * stage.channels);
  const double mean = static_cast<double>(sum) / count;
  const double variance = static_cast<double>(squares) / count - mean * mean;
  const double deviation = fmax(sqrt(fmax(variance, 0.0)), 255 / sqrt(count));
  stage.moments[2 * blockIdx.x] = static_cast<float>(mean);
  stage.moments[2 * blockIdx.x + 1] = static_cast<float>(1 / deviation);
}

struct Values {
  float at[most_channels];
};

/// Adds weight * (pixel (p, q) of the sample's image, as its row makes it).
__device__ __forceinline__ void add_pixel(const InputStage& stage, int sample, int p, int q, float weight, Values& to) {
  const SampleRow& row = stage.rows[sample];
  if (p >= row.erase_y && p < row.erase_y + row.erase_h && q >= row.erase_x && q < row.erase_x + row.erase_w) return;
  const int y = position(stage, row.y + (row.vertical_flip != 0 ? stage.height - 1 - p : p), stage.source_height),
            x = position(stage, row.x + (row.flip != 0 ? stage.width - 1 - q : q), stage.source_width);
  const bool padding = y < 0 || y >= stage.source_height || x < 0 || x >= stage.source_width;
  const Index at = (static_cast<Index>(y) * stage.source_width + x) * stage.channels;
  const std::uint8_t* const image = image_of(stage, row);
  using Normalise = InputStage::Normalise;
  const bool own = stage.normalise == Normalise::per_image, has_mean = stage.normalise == Normalise::mean_image;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    if (c >= stage.channels) continue;
    float subtract = stage.mean[c];
    const float multiply = own ? stage.moments[2 * sample + 1] : 1 / stage.std[c];
    if (own) subtract = stage.moments[2 * sample];
    if (has_mean) subtract = padding ? 0 : stage.mean_image[at + c];
    const float pixel = padding ? 0.0F : static_cast<float>(image[at + c]);
    to.at[c] += weight * ((pixel - subtract) * multiply);
  }
}

/// A thread a pixel, a row of blocks a sample.
template <class T>
__global__ void __launch_bounds__(threads) input_kernel(InputStage stage) {
  await_previous();
  const int pixel = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (pixel >= stage.height * stage.width) return;
  const int sample = static_cast<int>(blockIdx.y), p = pixel / stage.width, q = pixel % stage.width;
  const SampleRow& row = stage.rows[sample];
  Values v = {};
  const bool mixed = row.partner >= 0, boxed = mixed && row.mix_h > 0;
  const bool in_box =
      boxed && p >= row.mix_y && p < row.mix_y + row.mix_h && q >= row.mix_x && q < row.mix_x + row.mix_w;
  if (!in_box) add_pixel(stage, sample, p, q, mixed && !boxed ? row.lambda : 1.0F, v);
  if (in_box || (mixed && !boxed)) add_pixel(stage, row.partner, p, q, in_box ? 1.0F : 1 - row.lambda, v);
  T* const to = static_cast<T*>(stage.x) +
                (static_cast<Index>(sample) * stage.height * stage.width + pixel) * stage.stored_channels;
  if (stage.stored_channels == 4) {
    union {
      T element[4];
      uint2 words[sizeof(T) / 2];
    } out;
#pragma unroll
    for (int c = 0; c < 4; ++c) out.element[c] = Element<T>::down(v.at[c]);
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / 2; ++i) reinterpret_cast<uint2*>(to)[i] = out.words[i];
  } else {
#pragma unroll
    for (int c = 0; c < most_channels; ++c)
      if (c < stage.stored_channels) to[c] = Element<T>::down(v.at[c]);
  }
}

}  // namespace

cudaError_t make_input(const InputStage& stage, cudaStream_t stream) {
  if (stage.channels < 1 || stage.channels > 4 || stage.stored_channels > most_channels) return cudaErrorInvalidValue;
  if (stage.normalise == InputStage::Normalise::per_image) {
    const cudaError_t error = launch(moments_kernel, static_cast<unsigned>(stage.samples), threads, 0, stream, stage);
    if (error != cudaSuccess) return error;
  }
  dim3 grid = grid_over(static_cast<Index>(stage.height) * stage.width, threads);
  grid.y = static_cast<unsigned>(stage.samples);
  return with_storage(stage.storage, [&](auto tag) {
    return launch(input_kernel<typename decltype(tag)::type>, grid, threads, 0, stream, stage);
  });
}

}  // namespace convoy::cuda
