// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/group_loops.hpp"

#include "backend/cpu/run_total.hpp"
#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

/// Length of an array that may not be read: C++ has none of length 0.
constexpr int kept(bool read, int count) { return read ? count : 1; }

/// Activations that are computed inside the loops. The others are applied to 32 pixels at a time, so that their
/// constants, and the choice between them, stay out of the loops.
CONVOY_INLINE bool is_usual(ActivationKind kind) {
  return kind == ActivationKind::identity || kind == ActivationKind::relu || kind == ActivationKind::leaky_relu;
}

/// values = activation(values).
[[gnu::noinline]] void activate_run(ActivationKind kind, float slope, float* values, int64_t vectors) {
  with_activation<VectorMath>(kind, slope, [&](auto rule) {
    for (int64_t i = 0; i < vectors * lanes; i += lanes) store_whole(values + i, rule.value(load_whole(values + i)));
  });
}

/// gradients *= derivative(x, y). x and y are read only if the rule needs them.
[[gnu::noinline]] void derive_run(ActivationKind kind, float slope, const float* x, const float* y, float* gradients,
                                  int64_t vectors) {
  with_activation<VectorMath>(kind, slope, [&](auto rule) {
    using Rule = decltype(rule);
    for (int64_t i = 0; i < vectors * lanes; i += lanes) {
      Vector input{}, output{};
      if constexpr (Rule::needs_input) input = load_whole(x + i);
      if constexpr (Rule::needs_output) output = load_whole(y + i);
      store_whole(gradients + i, load_whole(gradients + i) * rule.derivative(input, output));
    }
  });
}

/// x, the sum of the terms, of B channel blocks for the pixels [begin, end): [pixel][B][16]. Only the rarer activations
/// need it in backward.
template <class T, int B, bool partial>
[[gnu::noinline]] void sum_terms(const AccumulateArgs& args, int64_t image, int64_t block, int64_t begin, int64_t end,
                                 float* to) {
  const TermArgs &first = args.terms[0], &second = args.terms[1];
  const Lines<T, partial> x(args.layout, first.value, image, block), y(args.layout, second.value, image, block);
  for (int b = 0; b < B; ++b) {
    const int64_t c = (block + b) * lanes;
    const Vector s = first.scale ? load<false>(first.scale + c, 16) : splat(1),
                 s1 = second.scale ? load<false>(second.scale + c, 16) : splat(1);
    Vector h = first.scale ? load<false>(first.shift + c, 16) : splat(0);
    if (second.scale) h += load<false>(second.shift + c, 16);
    for (int64_t p = begin; p < end; ++p) {
      Vector v = x(p, b) * s + h;
      if (second.value) v += y(p, b) * s1;
      store_whole(to + ((p - begin) * B + b) * lanes, v);
    }
  }
}

CONVOY_INLINE Vector activate(ActivationKind kind, float slope, Vector x) {
  if (kind == ActivationKind::relu) return Relu<VectorMath>{}.value(x);
  if (kind == ActivationKind::leaky_relu) return LeakyRelu<VectorMath>{splat(slope)}.value(x);
  return x;
}

template <class T, int B, bool partial, bool two>
inline void evaluate_unit(const EvaluateArgs& args, int64_t image, int64_t block) {
  const TermArgs &first = args.terms[0], &second = args.terms[1];
  const Lines<T, partial> x(args.layout, first.value, image, block), y(args.layout, second.value, image, block),
      out(args.layout, args.out, image, block);
  Vector s[B], h[B], s1[B];
  for (int b = 0; b < B; ++b) {
    const int64_t c = (block + b) * lanes;
    s[b] = first.scale ? load<false>(first.scale + c, 16) : splat(1);
    h[b] = first.scale ? load<false>(first.shift + c, 16) : splat(0);
    s1[b] = two && second.scale ? load<false>(second.scale + c, 16) : splat(1);
    if (two && second.scale) h[b] += load<false>(second.shift + c, 16);
  }
  const ActivationKind activation = args.activation;
  const float slope = args.slope;
  const int64_t pixels = args.layout.pixels();
  const auto sum_at = [&](int64_t p, int b) {
    Vector v = x(p, b) * s[b] + h[b];
    if constexpr (two) v += y(p, b) * s1[b];
    return v;
  };
  if (is_usual(activation)) {
    for (int64_t p = 0; p < pixels; ++p) {
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) out.put(p, b, activate(activation, slope, sum_at(p, b)));
    }
    return;
  }
  alignas(64) float sums[run_pixels * B * lanes];
  for (int64_t begin = 0; begin < pixels; begin += run_pixels) {
    const int64_t end = begin + run_pixels < pixels ? begin + run_pixels : pixels;
    for (int64_t p = begin; p < end; ++p) {
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) store_whole(sums + ((p - begin) * B + b) * lanes, sum_at(p, b));
    }
    activate_run(activation, slope, sums, (end - begin) * B);
    for (int64_t p = begin; p < end; ++p) {
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) out.put(p, b, load_whole(sums + ((p - begin) * B + b) * lanes));
    }
  }
}

void evaluate(const EvaluateArgs& args, int64_t begin, int64_t end) {
  with_storage(args.layout.storage, [&](auto storage) {
    with_flag(args.terms[1].value != nullptr, [&](auto two) {
      for_units(args.layout, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
        evaluate_unit<decltype(storage), width, partial, two>(args, image, block);
      });
    });
  });
}

/// Mean and spread of the pixels so far, around an anchor near their mean: sums of x - anchor and of its square.
struct Moments {
  double sum[lanes] = {}, square[lanes] = {};
  float anchor[lanes];

  /// Adds the sums of one run of pixels, and moves the anchor to the mean of all `pixels`, which changes no value.
  void add(Vector run_sum, Vector run_square, double pixels) {
    float sums[lanes], squares[lanes];
    store_whole(sums, run_sum);
    store_whole(squares, run_square);
    const double share = 1 / pixels;
    for (int64_t c = 0; c < lanes; ++c) {
      const double total = sum[c] + static_cast<double>(sums[c]);
      const auto moved = static_cast<float>(static_cast<double>(anchor[c]) + total * share);
      const double step = static_cast<double>(moved) - static_cast<double>(anchor[c]);
      square[c] += static_cast<double>(squares[c]) - step * (2 * total - pixels * step);
      sum[c] = total - pixels * step;
      anchor[c] = moved;
    }
  }
};

/// sum += x - anchor, and square += its square, over the pixels [p, end). Four chains of additions hide the latency:
/// four channel blocks, or four pixels of one block.
template <bool squares_too, class T, int B, bool partial>
CONVOY_INLINE void add_pixels(const Lines<T, partial>& x, int64_t p, int64_t end, const Vector (&anchor)[B],
                              Vector (&sum)[B], Vector (&square)[B]) {
  constexpr int unroll = 4 / B;
  Vector sums[4], squares[4];
  for (int i = 0; i < 4; ++i) sums[i] = squares[i] = splat(0);
  for (; p + unroll <= end; p += unroll) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vector v = x(p + i / B, i % B) - anchor[i % B];
      sums[i] += v;
      if constexpr (squares_too) squares[i] += v * v;
    }
  }
  for (; p < end; ++p) {
    const Vector v = x(p, 0) - anchor[0];  // only where B = 1
    sums[0] += v;
    if constexpr (squares_too) squares[0] += v * v;
  }
  for (int b = 0; b < B; ++b) {
    sum[b] = B == 1 ? (sums[0] + sums[1]) + (sums[2] + sums[3]) : sums[b];
    square[b] = B == 1 ? (squares[0] + squares[1]) + (squares[2] + squares[3]) : squares[b];
  }
}

// Runs of at most 32 additions a chain are added in float, and the runs in double. The anchor of a run is the mean of
// the runs before it (Chan, Golub and LeVeque, 1983), that of the first its own mean. So the squares of all runs sum to
// at most twice the spread, however large the mean is and in whatever order the values come: the spread that runs
// before one add to it is at least half of what their distance adds to the squares. Float costs 35 u of a run's
// squares, and from the second run on up to 33 u by way of the run's sum, which moves the anchor: 136 u of the spread
// at most.
template <class T, int B, bool partial>
inline void statistics_unit(const StatisticsArgs& args, int64_t image, int64_t block) {
  constexpr int64_t run = run_pixels * (4 / B);
  const Lines<T, partial> x(args.layout, args.value, image, block);
  const int64_t pixels = args.layout.pixels(), first = pixels < run ? pixels : run;
  Vector anchor[B], sum[B], square[B];
  Moments moments[B];
  for (int b = 0; b < B; ++b) anchor[b] = x(0, b);
  add_pixels<false>(x, 0, first, anchor, sum, square);
  for (int b = 0; b < B; ++b) {
    anchor[b] += sum[b] * splat(1 / static_cast<float>(first));
    store_whole(moments[b].anchor, anchor[b]);
  }
  for (int64_t p = 0; p < pixels; p += run) {
    const int64_t end = p + run < pixels ? p + run : pixels;
    add_pixels<true>(x, p, end, anchor, sum, square);
    for (int b = 0; b < B; ++b) {
      moments[b].add(sum[b], square[b], static_cast<double>(end));
      anchor[b] = load_whole(moments[b].anchor);
    }
  }
  for (int b = 0; b < B; ++b) {
    const int64_t at = image * args.layout.padded_channels() + (block + b) * lanes;
    const double share = 1 / static_cast<double>(pixels);
    for (int64_t c = 0; c < lanes; ++c) {
      const double from_anchor = moments[b].sum[c] * share,
                   spread = moments[b].square[c] - from_anchor * moments[b].sum[c];
      args.means[at + c] = static_cast<double>(moments[b].anchor[c]) + from_anchor;
      args.spreads[at + c] = spread < 0 ? 0 : spread;  // keeps NaN
    }
  }
}

void statistics(const StatisticsArgs& args, int64_t begin, int64_t end) {
  with_storage(args.layout.storage, [&](auto storage) {
    for_units(args.layout, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
      statistics_unit<decltype(storage), width, partial>(args, image, block);
    });
  });
}

// A run of 32 additions in float costs at most 32 u of the sum of the absolute terms, the result's rounding one more,
// and the two roundings of a product two: at most 35 u for any number of pixels. One chain would cost that number in u.
template <class T, int B, bool partial, bool affine, bool two, int norms>
inline void accumulate_unit(const AccumulateArgs& args, int64_t image, int64_t block) {
  using Tensor = Lines<T, partial>;
  const Tensor g(args.layout, args.gradient, image, block), self(args.layout, args.self, image, block),
      g2(args.layout, args.second, image, block), y(args.layout, args.output, image, block),
      out(args.layout, args.out, image, block), y0(args.layout, args.norm[0].value, image, block),
      y1(args.layout, args.norm[1].value, image, block);
  Vector a[B], w[B], d[B], mean0[B], mean1[B], sum[B], product0[B], product1[B];
  for (int b = 0; b < B; ++b) {
    const int64_t c = (block + b) * lanes;
    if constexpr (affine) {
      a[b] = load<false>(args.a + c, 16);
      w[b] = load<false>(args.b + c, 16);
      d[b] = load<false>(args.d + c, 16);
    }
    if constexpr (norms > 0) mean0[b] = load<false>(args.norm[0].mean + c, 16);
    if constexpr (norms > 1) mean1[b] = load<false>(args.norm[1].mean + c, 16);
  }
  RunTotal totals[kept(norms > 0, B)], totals0[kept(norms > 0, B)], totals1[kept(norms > 1, B)];
  const ActivationKind activation = args.activation;
  const float slope = args.slope;
  const int64_t pixels = args.layout.pixels();
  const auto gradient_at = [&](int64_t p, int b) {
    Vector v = g(p, b);
    if constexpr (affine) v = v * a[b] + (self(p, b) * w[b] + d[b]);
    if constexpr (two) v += g2(p, b);
    return v;
  };
  const bool usual = is_usual(activation);
  alignas(64) float inputs[run_pixels * B * lanes], outputs[run_pixels * B * lanes], gradients[run_pixels * B * lanes];
  for (int64_t begin = 0; begin < pixels; begin += run_pixels) {
    const int64_t end = begin + run_pixels < pixels ? begin + run_pixels : pixels;
    if (!usual) {
      for (int64_t p = begin; p < end; ++p) {
#pragma GCC unroll 4
        for (int b = 0; b < B; ++b) {
          const int64_t at = ((p - begin) * B + b) * lanes;
          store_whole(gradients + at, gradient_at(p, b));
          if (args.output) store_whole(outputs + at, y(p, b));
        }
      }
      if (args.terms[0].value) sum_terms<T, B, partial>(args, image, block, begin, end, inputs);
      derive_run(activation, slope, inputs, outputs, gradients, (end - begin) * B);
    }
    for (int b = 0; b < B; ++b) sum[b] = product0[b] = product1[b] = splat(0);
    for (int64_t p = begin; p < end; ++p) {
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) {
        Vector v = usual ? gradient_at(p, b) : load_whole(gradients + ((p - begin) * B + b) * lanes);
        if (activation == ActivationKind::relu) {
          const Vector output = y(p, b);
          v = v * Relu<VectorMath>{}.derivative(output, output);
        } else if (activation == ActivationKind::leaky_relu) {
          const Vector output = y(p, b);
          v = v * LeakyRelu<VectorMath>{splat(slope)}.derivative(output, output);
        }
        out.put(p, b, v);
        if constexpr (norms > 0) {
          sum[b] += v;
          product0[b] += v * (y0(p, b) - mean0[b]);
        }
        if constexpr (norms > 1) product1[b] += v * (y1(p, b) - mean1[b]);
      }
    }
    for (int b = 0; b < B; ++b) {
      if constexpr (norms > 0) {
        totals[b].add(sum[b]);
        totals0[b].add(product0[b]);
      }
      if constexpr (norms > 1) totals1[b].add(product1[b]);
    }
  }
  const int64_t at = image * args.layout.padded_channels() + block * lanes;
  for (int b = 0; b < B; ++b) {
    if constexpr (norms > 0) {
      totals[b].store(args.sums + at + b * lanes);
      totals0[b].store(args.norm[0].products + at + b * lanes);
    }
    if constexpr (norms > 1) totals1[b].store(args.norm[1].products + at + b * lanes);
  }
}

template <class T, bool affine, bool two, int norms>
inline void accumulate_units(const AccumulateArgs& args, int64_t begin, int64_t end) {
  for_units(args.layout, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
    accumulate_unit<T, width, partial, affine, two, norms>(args, image, block);
  });
}

void accumulate(const AccumulateArgs& args, int64_t begin, int64_t end) {
  with_storage(args.layout.storage, [&](auto storage) {
    using T = decltype(storage);
    with_flag(args.a != nullptr, [&](auto affine) {
      with_flag(args.second != nullptr, [&](auto two) {
        if (args.norms == 0) accumulate_units<T, affine, two, 0>(args, begin, end);
        if (args.norms == 1) accumulate_units<T, affine, two, 1>(args, begin, end);
        if (args.norms == 2) accumulate_units<T, affine, two, 2>(args, begin, end);
      });
    });
  });
}

}  // namespace

template <>
const GroupKernels& kernels_for<GroupKernels, compiled_isa>() {
  static constexpr GroupKernels kernels{evaluate, statistics, accumulate};
  return kernels;
}

}  // namespace convoy::cpu
