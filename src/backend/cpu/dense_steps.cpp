// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dense_steps.hpp"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "backend/cpu/input.hpp"
#include "backend/cpu/loss.hpp"

namespace convoy::cpu {

bool InputStep::run(const Memory& memory, const Tile& tile) {
  make_input(input_, memory.samples, memory.images, height_, width_, reinterpret_cast<float*>(x_.at(memory, tile)));
  return true;
}

bool LinearStep::run(const Memory& memory, const Tile& tile) {
  const auto* x = reinterpret_cast<const float*>(spec_.x.at(memory, tile));
  auto* y = reinterpret_cast<float*>(spec_.y.at(memory, tile));
  if (spec_.bias.count > 0) {
    const float* const bias = memory.values + spec_.bias.begin;
    for (Index i = 0; i < spec_.images; ++i) std::copy(bias, bias + spec_.out, y + i * spec_.out);
  }
  return dnnl_sgemm('N', 'T', spec_.images, spec_.out, spec_.in, 1.0F, x, spec_.in, memory.values + spec_.weight.begin,
                    spec_.in, spec_.bias.count > 0 ? 1.0F : 0.0F, y, spec_.out) == dnnl_success;
}

bool LinearGradientStep::run(const Memory& memory, const Tile& tile) {
  const LinearStep::Spec& s = spec_.forward;
  const auto* x = reinterpret_cast<const float*>(s.x.at(memory, tile));
  const auto* dy = reinterpret_cast<const float*>(s.y.at(memory, tile));
  bool good = true;
  if (spec_.weight_trains)
    good = dnnl_sgemm('T', 'N', s.out, s.in, s.images, 1.0F, dy, s.out, x, s.in, 0.0F,
                      memory.gradients + s.weight.begin, s.in) == dnnl_success;
  if (s.bias.count > 0 && spec_.bias_trains) {
    float* const bias = memory.gradients + s.bias.begin;
    for (Index k = 0; k < s.out; ++k) {
      double sum = 0;
      for (Index i = 0; i < s.images; ++i) sum += static_cast<double>(dy[i * s.out + k]);
      bias[k] = static_cast<float>(sum);
    }
  }
  if (spec_.dx)
    good = good && dnnl_sgemm('N', 'N', s.images, s.in, s.out, 1.0F, dy, s.out, memory.values + s.weight.begin, s.in,
                              0.0F, reinterpret_cast<float*>(spec_.dx.at(memory, tile)), s.in) == dnnl_success;
  return good;
}

bool LossStep::run(const Memory& memory, const Tile& tile) {
  const LossSpec spec{
      .classes = spec_.classes, .smoothing = spec_.smoothing, .scale = memory.scale, .topk = spec_.topk};
  softmax_cross_entropy(spec, memory.samples, memory.valid,
                        reinterpret_cast<const float*>(spec_.logits.at(memory, tile)), memory.losses,
                        reinterpret_cast<float*>(spec_.gradient.at(memory, tile)), counters_);
  return true;
}

}  // namespace convoy::cpu
