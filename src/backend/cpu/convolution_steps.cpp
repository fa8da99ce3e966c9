// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution_steps.hpp"

#include <algorithm>

#include "backend/cpu/parallel.hpp"

namespace convoy::cpu {

void ConvolutionStep::open(const Memory& memory) {
  kernel_->pack(memory.values + spec_.weight.begin, spec_.packed.at(memory, {}));
}

bool ConvolutionStep::run(const Memory& memory, const Tile& tile) {
  const void* source = spec_.from.at(memory, tile);
  const void* result = spec_.to.at(memory, tile);
  if (spec_.direction == Direction::data) std::swap(source, result);
  const float* const bias = spec_.bias.count > 0 ? memory.values + spec_.bias.begin : nullptr;
  return kernel_->execute(tile.thread, source, spec_.packed.at(memory, tile), bias, result,
                          spec_.scratch.at(memory, tile));
}

std::string ConvolutionStep::describe() const {
  return (spec_.direction == Direction::forward ? "forward " : "data ") + kernel_->name();
}

bool WeightGradientStep::run(const Memory& memory, const Tile& tile) {
  auto* const sum = reinterpret_cast<float*>(spec_.sum.at(memory, tile));
  auto* const bias_sum = reinterpret_cast<float*>(spec_.bias_sum.at(memory, tile));
  float* const out = tile.opening ? sum : reinterpret_cast<float*>(spec_.part.at(memory, tile));
  float* const bias = tile.opening ? bias_sum : reinterpret_cast<float*>(spec_.bias_part.at(memory, tile));
  if (!kernel_->execute(tile.thread, spec_.source.at(memory, tile), out, bias, spec_.dy.at(memory, tile),
                        spec_.scratch.at(memory, tile)))
    return false;
  if (!tile.opening) {
    kernels_.add(sum, out, kernel_->packed_bytes() / 4);
    kernels_.add(bias_sum, bias, spec_.bias_floats);
  }
  return true;
}

void WeightGradientStep::close(const Memory& memory, int threads) {
  auto* const sum = reinterpret_cast<float*>(spec_.sum.at(memory, {}));
  auto* const bias_sum = reinterpret_cast<float*>(spec_.bias_sum.at(memory, {}));
  const Index blocks = kernel_->packed_bytes() / 64;
  for (int t = 1; t < threads; ++t) {
    const Tile other{.thread = t};
    const auto* part = reinterpret_cast<const float*>(spec_.sum.at(memory, other));
    split_units(blocks, lanes, [&](Index begin, Index end) {
      const Index last = end == blocks ? kernel_->packed_bytes() / 4 : end * lanes;
      kernels_.add(sum + begin * lanes, part + begin * lanes, last - begin * lanes);
    });
    if (spec_.bias_floats > 0)
      kernels_.add(bias_sum, reinterpret_cast<const float*>(spec_.bias_sum.at(memory, other)), spec_.bias_floats);
  }
  if (spec_.weight.count > 0) kernel_->unpack(sum, memory.gradients + spec_.weight.begin);
  if (spec_.bias.count > 0) std::copy(bias_sum, bias_sum + spec_.bias.count, memory.gradients + spec_.bias.begin);
}

std::string WeightGradientStep::describe() const { return "weights " + kernel_->name(); }

}  // namespace convoy::cpu
