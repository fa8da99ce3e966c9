// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/loss.hpp"

#include "backend/cuda/kernels/block_sum.cuh"
#include "backend/cuda/kernels/finite.cuh"
#include "backend/cuda/kernels/meeting.cuh"
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/kernels/tiling.hpp"
#include "backend/rules/cross_entropy.hpp"

namespace convoy::cuda {
namespace {

constexpr int warps = 4, threads = 32 * warps;
constexpr unsigned full_warp = 0xffffffffU;

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(full_warp, value, lanes);
  return value;
}
__device__ __forceinline__ float warp_max(float value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(full_warp, value, lanes));
  return value;
}

/// Classes that rank before the label; every lane gets it.
__device__ __forceinline__ int rank_of(const float* z, int classes, int label, int lane) {
  const float own = z[label];
  int before = 0;
  for (int k = lane; k < classes; k += 32) before += ranks_before(z[k], k, own, label) ? 1 : 0;
  return warp_sum(before);
}

/// logits = raw + bias, in float. All lanes of the warp see them.
template <class T>
__device__ __forceinline__ void write_logits(const SoftmaxLoss& loss, int sample, int lane) {
  const T* const raw = static_cast<const T*>(loss.raw) + static_cast<Index>(sample) * loss.stored_classes;
  float* const z = loss.logits + static_cast<Index>(sample) * loss.classes;
  for (int k = lane; k < loss.classes; k += 32)
    z[k] = Element<T>::up(raw[k]) + (loss.bias != nullptr ? loss.bias[k] : 0.0F);
  __syncwarp();
}

/// By one warp.
template <class T>
__device__ __forceinline__ void score(const SoftmaxLoss& loss, int sample, int lane) {
  const int stored = static_cast<int>(loss.stored_classes);
  T* const dz = loss.dlogits != nullptr ? static_cast<T*>(loss.dlogits) + static_cast<Index>(sample) * stored : nullptr;
  write_logits<T>(loss, sample, lane);
  if (sample >= loss.feed->valid) {
    if (dz != nullptr)
      for (int k = lane; k < stored; k += 32) dz[k] = Element<T>::down(0);
    if (lane == 0) {
      loss.loss[sample] = 0;
      loss.hits[sample] = 0;
    }
    return;
  }
  const float* const z = loss.logits + static_cast<Index>(sample) * loss.classes;
  const SampleRow& row = loss.rows[sample];
  const SoftTarget target{row.a,
                          row.b,
                          static_cast<double>(row.lambda),
                          static_cast<double>(loss.smoothing),
                          static_cast<double>(loss.classes),
                          loss.class_weights};
  float highest = z[0];
  for (int k = lane; k < loss.classes; k += 32) highest = fmaxf(highest, z[k]);
  highest = warp_max(highest);
  double exps = 0, sum = 0, weight_sum = 0;
  for (int k = lane; k < loss.classes; k += 32) {
    exps += exp(static_cast<double>(z[k]) - static_cast<double>(highest));
    sum += target.weight(k) * static_cast<double>(z[k]);
    weight_sum += target.weight(k);
  }
  exps = warp_sum(exps);
  sum = warp_sum(sum);
  const double mass = target.mass(loss.class_weights == nullptr ? 0 : warp_sum(weight_sum));
  const double log_sum = static_cast<double>(highest) + log(exps);
  if (dz != nullptr) {
    const double scale = static_cast<double>(loss.feed->scale) * static_cast<double>(loss.weight) *
                         (loss.loss_scale != nullptr ? static_cast<double>(*loss.loss_scale) : 1.0);
    for (int k = lane; k < stored; k += 32) {
      double gradient = 0;
      if (k < loss.classes) gradient = scale * (mass * exp(static_cast<double>(z[k]) - log_sum) - target(k));
      dz[k] = Element<T>::down(static_cast<float>(gradient));
    }
  }
  const int before = rank_of(z, loss.classes, row.a, lane);
  if (lane != 0) return;
  const double own = static_cast<double>(loss.weight) *
                     target.loss(log_sum, mass, static_cast<double>(z[row.a]), static_cast<double>(z[row.b]), sum);
  loss.loss[sample] = static_cast<float>(loss.adds ? static_cast<double>(loss.loss[sample]) + own : own);
  loss.hits[sample] = static_cast<std::uint8_t>((before < 1 ? 1 : 0) + (before < loss.topk ? 2 : 0));
}

/// By one block, in the order of samples. A sum that isn't finite shows in the last head's.
__device__ __forceinline__ void add_up(const SoftmaxLoss& loss) {
  double sum = 0;
  int top1 = 0, topk = 0, bad = 0;
  for (int i = static_cast<int>(threadIdx.x); i < loss.samples; i += threads) {
    const float own = __ldcg(loss.loss + i);
    const int hits = __ldcg(loss.hits + i);
    sum += static_cast<double>(own);
    top1 += hits & 1;
    topk += hits >> 1;
    bad += not_finite(own) ? 1 : 0;
  }
  sum = block_sum<threads>(sum);
  top1 = block_sum<threads>(top1);
  topk = block_sum<threads>(topk);
  bad = block_sum<threads>(bad);
  if (threadIdx.x != 0) return;
  loss.counters->sums[Counter::loss] += sum;
  loss.counters->sums[Counter::top1] += top1;
  loss.counters->sums[Counter::topk] += topk;
  loss.counters->samples += loss.feed->valid;
  if (bad > 0 && loss.worst != nullptr) atomicMin(loss.worst, 0);
}

/// One warp per sample; the last block adds up. Without a bound on the blocks, the compiler saves registers and spills.
template <class T>
__global__ void __launch_bounds__(threads, 4) softmax_kernel(SoftmaxLoss loss) {
  await_previous();
  const int sample = static_cast<int>(blockIdx.x * warps + threadIdx.x / 32);
  if (sample < loss.samples) score<T>(loss, sample, static_cast<int>(threadIdx.x % 32));
  if (loss.counters != nullptr && comes_last(loss.arrivals, gridDim.x)) add_up(loss);
}

}  // namespace

cudaError_t softmax_cross_entropy(const SoftmaxLoss& loss, cudaStream_t stream) {
  return with_storage(loss.storage, [&](auto tag) {
    return launch(softmax_kernel<typename decltype(tag)::type>, grid_over(loss.samples, warps), threads, 0, stream,
                  loss);
  });
}

}  // namespace convoy::cuda
