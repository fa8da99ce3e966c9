// SPDX-License-Identifier: Apache-2.0
// The moving average of the weights on the CPU, against the same in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/factory.hpp"
#include "core/errors.hpp"
#include "network/models.hpp"
#include "support/formula.hpp"

namespace convoy {
namespace {

TEST(Blend, FollowsTheWeightsLikeDoublePrecision) {
  const auto backend = make_cpu_backend(2);
  GraphSpec model;
  model.model = "resnet8";
  model.classes = 10;
  model.channels = 3;
  const Plan plan = make_plan(build_graph(model), {});
  const OptimiserSpec optimiser;
  const SetLayout layout = backend->layout(plan, optimiser);
  const ParameterSet average{backend->allocate(layout.count()), layout.count()},
      weights{backend->allocate(layout.count()), layout.count()};
  EXPECT_THROW(backend->blend(average, weights), Error) << "no updater was compiled";
  const auto updater = backend->compile(plan, optimiser);

  const auto values = [&](int step) { return formula_values("weights " + std::to_string(step), layout.count()); };
  std::vector<double> expected = values(0);
  for (Index i = 0; i < layout.count(); ++i)
    average.block[i] = static_cast<float>(expected[static_cast<std::size_t>(i)]);
  const std::vector<float> start(average.block, average.block + layout.count());
  const auto update = [&](int step, double decay) {
    const std::vector<double> now = values(step);
    for (Index i = 0; i < layout.count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      weights.block[i] = static_cast<float>(now[at]);
      expected[at] = decay * expected[at] + (1 - decay) * static_cast<double>(weights.block[i]);
    }
    backend->set_step({.ema_decay = static_cast<float>(decay)});
    backend->blend(average, weights);
  };
  constexpr int steps = 40;
  for (int step = 1; step <= steps; ++step) update(step, step % 2 == 0 ? 0.9 : 0.5);
  // Each update rounds a decay, two products and a sum of numbers up to 1.
  const double limit = steps * 4 * std::ldexp(1.0, -24);
  for (const Range& range : {layout.values, layout.statistics})
    for (Index i = range.begin; i < range.end(); ++i)
      ASSERT_NEAR(average.block[i], expected[static_cast<std::size_t>(i)], limit) << i;
  for (const Range& range : {layout.optimiser, layout.state})
    for (Index i = range.begin; i < range.end(); ++i)
      ASSERT_EQ(average.block[i], start[static_cast<std::size_t>(i)]) << "momentum and state are no part of it";

  update(steps + 1, 0);
  for (Index i = 0; i < layout.values.end(); ++i) ASSERT_EQ(average.block[i], weights.block[i]) << i;
}

}  // namespace
}  // namespace convoy
