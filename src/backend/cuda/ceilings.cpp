// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/ceilings.hpp"

#include "backend/cuda/runtime/check.hpp"
#include "backend/cuda/runtime/timing.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

constexpr Index usual_images = 256;
constexpr Index workspace_limit = Index{256} << 20;

double bytes_per_second(Queue& queue, Index bytes) {
  const Scratch memory(queue, 2 * bytes);
  const auto copy = [&](int) {
    check(cudaMemcpyAsync(memory.at(bytes), memory.at(0), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                          queue.stream()),
          "a copy that measures the GPU");
  };
  return 2 * static_cast<double>(bytes) / seconds_of(queue, copy);
}

double flops_per_second(const Context& context, const CeilingSpec& spec) {
  const Precision precision = spec.precision;
  const ConvolutionGraph graph{
      .precision = precision, .n = spec.images > 0 ? spec.images : usual_images, .c = 512, .h = 28, .w = 28, .k = 512};
  const auto operation = context.cudnn.find(graph, {.workspace_limit = workspace_limit});
  if (!operation)
    fail(Exit::device, "cuDNN has no plan for the convolution that measures the GPU ({}); leave --profile out",
         describe(graph));
  const Index image_bytes = rounded(graph.n * graph.c * graph.h * graph.w * storage_bytes(precision));
  const Index filter_bytes = rounded(graph.c * graph.k * storage_bytes(precision));
  const Scratch memory(context.queue, 2 * image_bytes + filter_bytes + operation->workspace_bytes());
  Pointers pointers;
  pointers[Role::x] = memory.at(0);
  pointers[Role::y] = memory.at(image_bytes);
  pointers[Role::w] = memory.at(2 * image_bytes);
  pointers.workspace = memory.at(2 * image_bytes + filter_bytes);
  fill_with_noise(context.queue, memory.at(0), 2 * image_bytes + filter_bytes, precision);  // zeros would run faster
  const double seconds = seconds_of(context.queue, [&](int) { operation->execute(pointers, context.queue.stream()); });
  return flops_of(graph) / seconds;
}

}  // namespace

Ceilings measure_ceilings(const Context& context, const CeilingSpec& spec) {
  return {.flops_per_second = flops_per_second(context, spec),
          .bytes_per_second = bytes_per_second(context.queue, spec.copied_bytes)};
}

}  // namespace convoy::cuda
