// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/global_average_pool_loops.hpp"

#include "backend/cpu/run_total.hpp"
#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

/// `rows`: [image][channels] floats, nothing stored past the last channel.
inline void global_row(const GlobalAverageArgs& args, int64_t image, int64_t block, bool forward) {
  const int64_t pixels = args.x.pixels(), rest = args.x.channels - block * lanes;
  const int count = static_cast<int>(rest < lanes ? rest : lanes);
  with_storage(args.x.storage, [&](auto storage) {
    with_flag(count < lanes && !args.x.blocked(), [&](auto partial) {
      const Lines<decltype(storage), partial> x(args.x, forward ? args.from : args.to, image, block);
      float* const row = static_cast<float*>(const_cast<void*>(forward ? args.to : args.from)) +
                         image * args.x.channels + block * lanes;
      if (forward) {
        RunTotal total;
        add_terms(total, pixels, [&](int64_t p) { return x(p, 0); });
        float mean[lanes];
        total.store(mean, static_cast<double>(pixels));
        store<true>(row, load_whole(mean), count);
      } else {
        const Vector share = load<true>(row, count) / splat(static_cast<float>(pixels));
        for (int64_t p = 0; p < pixels; ++p) x.put(p, 0, share);
      }
    });
  });
}

void global_forward(const GlobalAverageArgs& args, int64_t begin, int64_t end) {
  for_units(args.x, begin, end, [&](int64_t image, int64_t block, auto width, auto) {
    for (int64_t b = 0; b < width; ++b) global_row(args, image, block + b, true);
  });
}

void global_backward(const GlobalAverageArgs& args, int64_t begin, int64_t end) {
  for_units(args.x, begin, end, [&](int64_t image, int64_t block, auto width, auto) {
    for (int64_t b = 0; b < width; ++b) global_row(args, image, block + b, false);
  });
}

}  // namespace

template <>
const GlobalAverageKernels& kernels_for<GlobalAverageKernels, compiled_isa>() {
  static constexpr GlobalAverageKernels kernels{global_forward, global_backward};
  return kernels;
}

}  // namespace convoy::cpu
