// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/channel_gate_loops.hpp"

#include "backend/cpu/run_total.hpp"
#include "backend/cpu/vector_loops.hpp"
#include "backend/rules/gate.hpp"

namespace convoy::cpu {
namespace {

/// Calls visit(lines of x, of another tensor like x, of s, of ds) for each block of channels of the units.
template <class Visit>
inline void for_blocks(const GateArgs& args, const void* other, int64_t begin, int64_t end, Visit visit) {
  with_storage(args.x.storage, [&](auto storage) {
    for_units(args.x, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
      for (int64_t b = block; b < block + width; ++b) {
        using Tensor = Lines<decltype(storage), decltype(partial)::value>;
        visit(Tensor(args.x, args.from_x, image, b), Tensor(args.x, other, image, b),
              Tensor(args.s, args.from_s, image, b), Tensor(args.s, args.to, image, b));
      }
    });
  });
}

/// to = from * gate(s).
inline void scale(const GateArgs& args, const void* from, int64_t begin, int64_t end) {
  GateArgs now = args;
  now.from_x = from;
  const int64_t pixels = args.x.pixels();
  for_blocks(now, args.to, begin, end, [&](const auto& x, const auto& y, const auto& s, const auto&) {
    const Vector factor = gate_value<VectorMath>(args.gate, s(0, 0));
    for (int64_t p = 0; p < pixels; ++p) y.put(p, 0, x(p, 0) * factor);
  });
}

void gate_forward(const GateArgs& args, int64_t begin, int64_t end) { scale(args, args.from_x, begin, end); }

void gate_backward(const GateArgs& args, int64_t begin, int64_t end) { scale(args, args.dy, begin, end); }

void gate_backward_gate(const GateArgs& args, int64_t begin, int64_t end) {
  const int64_t pixels = args.x.pixels();
  for_blocks(args, args.dy, begin, end, [&](const auto& x, const auto& dy, const auto& s, const auto& ds) {
    RunTotal total;
    add_terms(total, pixels, [&](int64_t p) { return dy(p, 0) * x(p, 0); });
    float sum[lanes];
    total.store(sum);
    ds.put(0, 0, gate_slope<VectorMath>(args.gate, s(0, 0)) * load_whole(sum));
  });
}

}  // namespace

template <>
const GateKernels& kernels_for<GateKernels, compiled_isa>() {
  static constexpr GateKernels kernels{gate_forward, gate_backward, gate_backward_gate};
  return kernels;
}

}  // namespace convoy::cpu
