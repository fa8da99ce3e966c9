// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/pooled_norm.hpp"

#include <algorithm>

#ifndef CONVOY_ON_GPU
#include "backend/cuda/kernels/division.cuh"
#endif
#include "backend/cuda/operations/adaptive_average_pool.hpp"
#include "backend/cuda/operations/global_average_pool.hpp"
#include "cuda/kernels/norm_case.hpp"
#include "network/graph.hpp"
#include "support/formula.hpp"
#include "support/reference/operations.hpp"

namespace convoy::cuda {
namespace {

Node node_of(const Attributes& attributes) {
  Node node;
  node.name = "pool";
  node.attributes = attributes;
  return node;
}

struct Case {
  Tensor x;
  Pool pool;
};
std::vector<Case> cases(Pool::Mode mode) {
  std::vector<Case> all;
  for (const Index channels : {8, 3, 40}) {
    all.push_back({Tensor(2, channels, 7, 9), {mode, 3, 2, 1}});
    all.push_back({Tensor(3, channels, 6, 5), {mode, 2, 2, 0}});
    all.push_back({Tensor(1, channels, 5, 8), {mode, 3, 1, 1, false}});
    all.push_back({Tensor(1, channels, 7, 7), {mode, 2, 3, 0}});  // windows with gaps between them
  }
  return all;
}

class Pooling : public EveryStorage {
 protected:
  template <class Body>
  void for_every_case(Pool::Mode mode, const Body& body) {
    in_all_orders([&] {
      for (Case& c : cases(mode)) {
        SCOPED_TRACE(testing::Message() << c.x.c << " channels, kernel " << c.pool.kernel << ", stride "
                                        << c.pool.stride);
        c.x.values = formula_values("x", c.x.count());
        // Equal neighbours: the first one wins.
        for (double& value : c.x.values) value = std::round(value * 4) / 4;
        Bench bench;
        body(bench, c);
        if (HasFatalFailure()) return;
      }
    });
  }
  PoolShape shape_of(const Case& c, const Tensor& y) {
    PoolShape shape{storage()};
    shape.n = static_cast<int>(c.x.n);
    shape.h = static_cast<int>(c.x.h);
    shape.w = static_cast<int>(c.x.w);
    shape.p = static_cast<int>(y.h);
    shape.q = static_cast<int>(y.w);
    shape.channels = c.x.c;
    shape.kernel = c.pool.kernel;
    shape.stride = c.pool.stride;
    shape.pad = c.pool.pad;
    shape.count_padding = c.pool.count_padding;
    return shape;
  }
};
CONVOY_EVERY_STORAGE(Pooling);

TEST_P(Pooling, MaxAndItsGradient) {
  for_every_case(Pool::Mode::max, [&](Bench& bench, Case& c) {
    MaxPool pool;
    pool.x = bench.tensor(c.x, storage());
    const Node node = node_of(c.pool);
    const reference::Output want = reference::forward(node, {{&c.x}, {}});
    pool.shape = shape_of(c, want.y);
    pool.y = bench.empty_elements(want.y.count(), storage());
    pool.argmax = bench.empty<std::uint8_t>(want.y.count());
    expect_success(max_pool(pool, bench.stream()));
    expect_close(bench.tensor(pool.y, want.y, storage()).values, want.y.values, 0, "y");

    Tensor dy = formula_tensor("dy", want.y);
    const void* const device_dy = bench.tensor(dy, storage());
    void* const dx = bench.empty_elements(c.x.count(), storage());
    expect_success(max_pool_backward(pool.shape, device_dy, pool.argmax, dx, bench.stream()));
    const reference::Gradient gradient = reference::backward(node, {{&c.x}, {}}, want, dy);
    expect_close(bench.tensor(dx, c.x, storage()).values, gradient.dx[0].values, epsilon() + 0x1p-22, "dx");
  });
}

TEST_P(Pooling, MaxOfNormAndActivationOnTheFly) {
  for_every_case(Pool::Mode::max, [&](Bench& bench, Case& c) {
    MaxPool pool;
    pool.x = bench.tensor(c.x, storage());
    const Values scale = formula_values("scale", c.x.c), shift = formula_values("shift", c.x.c);
    pool.scale = bench.floats(scale);
    pool.shift = bench.floats(shift);
    pool.activation = {ActivationKind::relu};
    Tensor z = Tensor::like(c.x);
    for (Index i = 0; i < z.n; ++i)
      for (Index k = 0; k < z.c; ++k)
        for (Index j = 0; j < z.h * z.w; ++j) {
          const auto channel = static_cast<std::size_t>(k);
          z.line(i, k, 0)[j] = activate(pool.activation, scale[channel] * c.x.line(i, k, 0)[j] + shift[channel]);
        }
    const reference::Output want = reference::forward(node_of(c.pool), {{&z}, {}});
    pool.shape = shape_of(c, want.y);
    pool.y = bench.empty_elements(want.y.count(), storage());
    expect_success(max_pool(pool, bench.stream()));
    expect_close(bench.tensor(pool.y, want.y, storage()).values, want.y.values, epsilon() + 0x1p-22, "y");
  });
}

/// What pooling, activation and norm's sums give one after the other, the activation's input taken as the norm's x.
TEST_P(Pooling, GradientThroughMaxActivationAndNorm) {
  for_every_case(Pool::Mode::max, [&](Bench& bench, Case& c) {
    PooledGradient from;
    from.x = bench.tensor(c.x, storage());
    const Values scale = formula_values("scale", c.x.c), shift = formula_values("shift", c.x.c),
                 mean = formula_values("mean", c.x.c, 0.25);
    from.scale = bench.floats(scale);
    from.shift = bench.floats(shift);
    from.activation = {ActivationKind::relu};
    Tensor z = Tensor::like(c.x);
    const auto for_each = [&](const Tensor& x, const auto& use) {
      for (Index i = 0; i < x.n; ++i)
        for (Index k = 0; k < x.c; ++k)
          for (Index j = 0; j < x.h * x.w; ++j) use(i, k, j, static_cast<std::size_t>(k));
    };
    for_each(z, [&](Index i, Index k, Index j, std::size_t channel) {
      z.line(i, k, 0)[j] = activate(from.activation, scale[channel] * c.x.line(i, k, 0)[j] + shift[channel]);
    });
    const Node node = node_of(c.pool);
    const reference::Output pooled = reference::forward(node, {{&z}, {}});
    from.shape = shape_of(c, pooled.y);
    MaxPool pool{
        .shape = from.shape, .x = from.x, .scale = from.scale, .shift = from.shift, .activation = from.activation};
    pool.y = bench.empty_elements(pooled.y.count(), storage());
    pool.argmax = bench.empty<std::uint8_t>(pooled.y.count());
    expect_success(max_pool(pool, bench.stream()));
    from.argmax = pool.argmax;

    Tensor dy = formula_tensor("dy", pooled.y), more = formula_tensor("more", pooled.y), sum = dy;
    from.dy = bench.tensor(dy, storage());
    from.dy_more = bench.tensor(more, storage());
    for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] = dy.values[i] + more.values[i];
    Tensor g = reference::backward(node, {{&z}, {}}, pooled, sum).dx[0], dx = g;
    Values dbeta(static_cast<std::size_t>(g.c)), products(dbeta.size());
    const Values a = formula_values("a", g.c), b = formula_values("b", g.c), d = formula_values("d", g.c);
    for_each(g, [&](Index i, Index k, Index j, std::size_t channel) {
      const double x = c.x.line(i, k, 0)[j];
      double& value = g.line(i, k, 0)[j];
      if (!(z.line(i, k, 0)[j] > 0)) value = 0;
      dbeta[channel] += value;
      products[channel] += value * (x - mean[channel]);
      dx.line(i, k, 0)[j] = a[channel] * value + b[channel] * x + d[channel];
    });

    const Reduction reduction(bench, {c.x.n * c.x.h * c.x.w, c.x.c}, 2);
    PooledReduce reduce{from, bench.floats(mean), reduction.place, {}};
    reduce.end.totals = bench.empty<float>(2 * c.x.c);
    expect_success(reduce_pooled(reduce, bench.stream()));
    reduction.expect_ready(bench);
    expect_close(bench.floats(reduce.end.totals, c.x.c), dbeta, 0x1p-19, "sum g");
    expect_close(bench.floats(reduce.end.totals + c.x.c, c.x.c), products, 0x1p-19, "sum g (x - mean)");

    PooledApply apply{from, bench.floats(a), bench.floats(b), bench.floats(d)};
    apply.dx = bench.empty_elements(c.x.count(), storage());
    expect_success(apply_pooled(apply, bench.stream()));
    expect_close(bench.tensor(apply.dx, dx, storage()).values, dx.values, epsilon() + 0x1p-20, "dx");
  });
}

#ifndef CONVOY_ON_GPU
TEST(Division, ThirtyTwoBitsWhereBothFit) {
  for (const Index n :
       {Index{0}, Index{6}, Index{1} << 31, (Index{1} << 32) - 1, Index{1} << 32, (Index{1} << 40) + 5}) {
    for (const Index by : {Index{1}, Index{3}, Index{7}, (Index{1} << 32) - 1, Index{1} << 33}) {
      EXPECT_EQ(divided(n, by).quotient, n / by) << n << " by " << by;
      EXPECT_EQ(divided(n, by).rest, n % by) << n << " by " << by;
    }
  }
}
#endif

TEST_P(Pooling, AverageAndItsGradient) {
  for_every_case(Pool::Mode::average, [&](Bench& bench, Case& c) {
    const void* const x = bench.tensor(c.x, storage());
    const Node node = node_of(c.pool);
    const reference::Output want = reference::forward(node, {{&c.x}, {}});
    const PoolShape shape = shape_of(c, want.y);
    void* const y = bench.empty_elements(want.y.count(), storage());
    expect_success(average_pool(shape, x, y, bench.stream()));
    expect_close(bench.tensor(y, want.y, storage()).values, want.y.values, epsilon() + 0x1p-21, "y");

    Tensor dy = formula_tensor("dy", want.y);
    const void* const device_dy = bench.tensor(dy, storage());
    void* const dx = bench.empty_elements(c.x.count(), storage());
    expect_success(average_pool_backward(shape, device_dy, dx, bench.stream()));
    const reference::Gradient gradient = reference::backward(node, {{&c.x}, {}}, want, dy);
    expect_close(bench.tensor(dx, c.x, storage()).values, gradient.dx[0].values, epsilon() + 0x1p-21, "dx");
  });
}

TEST_P(Pooling, GlobalAverageAndItsGradient) {
  for_every_case(Pool::Mode::average, [&](Bench& bench, Case& c) {
    const GlobalPool pool{storage(), c.x.n, c.x.h * c.x.w, c.x.c};
    const Node node = node_of(GlobalAveragePool{});
    const void* const x = bench.tensor(c.x, storage());
    const reference::Output want = reference::forward(node, {{&c.x}, {}});
    void* const y = bench.empty_elements(want.y.count(), storage());
    expect_success(global_pool(pool, x, y, bench.stream()));
    expect_close(bench.tensor(y, want.y, storage()).values, want.y.values, epsilon() + 0x1p-19, "y");

    Tensor dy = formula_tensor("dy", want.y);
    const void* const device_dy = bench.tensor(dy, storage());
    void* const dx = bench.empty_elements(c.x.count(), storage());
    expect_success(global_pool_backward(pool, device_dy, dx, bench.stream()));
    const reference::Gradient gradient = reference::backward(node, {{&c.x}, {}}, want, dy);
    expect_close(bench.tensor(dx, c.x, storage()).values, gradient.dx[0].values, epsilon() + 0x1p-22, "dx");
  });
}

TEST_P(Pooling, AdaptiveAverageAndItsGradient) {
  for_every_case(Pool::Mode::average, [&](Bench& bench, Case& c) {
    for (const int size : {4, 1, 10}) {
      SCOPED_TRACE(size);
      const Node node = node_of(AdaptiveAveragePool{size});
      const void* const x = bench.tensor(c.x, storage());
      const reference::Output want = reference::forward(node, {{&c.x}, {}});
      AdaptivePool pool{.storage = storage()};
      pool.n = static_cast<int>(c.x.n);
      pool.h = static_cast<int>(c.x.h);
      pool.w = static_cast<int>(c.x.w);
      pool.p = pool.q = size;
      pool.channels = c.x.c;
      void* const y = bench.empty_elements(want.y.count(), storage());
      expect_success(adaptive_pool(pool, x, y, bench.stream()));
      expect_close(bench.tensor(y, want.y, storage()).values, want.y.values, epsilon() + 0x1p-19, "y");

      Tensor dy = formula_tensor("dy", want.y);
      const void* const device_dy = bench.tensor(dy, storage());
      void* const dx = bench.empty_elements(c.x.count(), storage());
      expect_success(adaptive_pool_backward(pool, device_dy, dx, bench.stream()));
      const reference::Gradient gradient = reference::backward(node, {{&c.x}, {}}, want, dy);
      expect_close(bench.tensor(dx, c.x, storage()).values, gradient.dx[0].values, epsilon() + 0x1p-19, "dx");
    }
  });
}

TEST_P(Pooling, NanWinsInMax) {
  in_all_orders([&] {
    Bench bench;
    Tensor x(1, 8, 2, 2);
    x.at(0, 3, 1, 0) = std::nan("");
    MaxPool pool;
    pool.x = bench.tensor(x, storage());
    pool.shape = shape_of({x, {}}, Tensor(1, 8));
    pool.y = bench.empty_elements(8, storage());
    expect_success(max_pool(pool, bench.stream()));
    const Values y = bench.elements(pool.y, 8, storage());
    for (std::size_t c = 0; c < 8; ++c) EXPECT_EQ(std::isnan(y[c]), c == 3);
  });
}

}  // namespace
}  // namespace convoy::cuda
