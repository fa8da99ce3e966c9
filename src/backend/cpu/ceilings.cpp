// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/ceilings.hpp"

#include <algorithm>
#include <cstddef>

#include "backend/cpu/memory.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

constexpr int repetitions = 8;
constexpr Index usual_images = 32;

/// The least of some runs after one that warms up.
template <class Body>
double seconds_of(const Body& body) {
  body();
  double least = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = real_clock().now();
    body();
    const double seconds = seconds_since(begin);
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

double bytes_per_second(Index bytes) {
  const Index floats = bytes / static_cast<Index>(sizeof(float));
  HostMemory memory;
  float* const from = memory.allocate(floats);
  float* const to = memory.allocate(floats);
  fill_floats(from, floats, 1.0F);
  return 2 * sizeof(float) * static_cast<double>(floats) / seconds_of([&] { copy_floats(to, from, floats, 1.0F); });
}

double flops_per_second(const Onednn& onednn, Isa isa, int threads, MemoryFormat format, const CeilingSpec& spec) {
  const ConvolutionShape shape{.images = spec.images > 0 ? spec.images : usual_images,
                               .in = 512,
                               .out = 512,
                               .height = 28,
                               .width = 28,
                               .kernel = 1,
                               .kernel_w = 1,
                               .pad = 0,
                               .pad_w = 0,
                               .format = format,
                               .storage = spec.precision == Precision::bf16 ? Storage::bf16 : Storage::f32};
  const auto kernel = ConvolutionKernel::make(onednn, isa, {.shape = shape, .threads = threads});
  HostMemory memory;
  const Index elements = shape.images * shape.in * shape.height * shape.width;
  const auto bytes = [&](Index count) { return memory.allocate(count / 4 + 16); };
  const float* const weights = memory.allocate(shape.in * shape.out);
  float* const packed = bytes(kernel->packed_bytes());
  kernel->pack(weights, packed);
  const ConvolutionData data{.source = memory.allocate(elements),
                             .packed = packed,
                             .result = memory.allocate(elements),
                             .scratch = bytes(kernel->scratch_bytes())};
  bool good = true;
  const double seconds = seconds_of([&] { good = kernel->execute(data) && good; });
  require(good, "a convolution that measures the device failed");
  return 2 * static_cast<double>(elements) * static_cast<double>(shape.out) / seconds;
}

}  // namespace

Ceilings measure_ceilings(const Onednn& onednn, Isa isa, int threads, MemoryFormat format, const CeilingSpec& spec) {
  return {.flops_per_second = flops_per_second(onednn, isa, threads, format, spec),
          .bytes_per_second = bytes_per_second(spec.copied_bytes)};
}

}  // namespace convoy::cpu
