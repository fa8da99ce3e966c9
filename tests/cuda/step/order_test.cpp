// SPDX-License-Identifier: Apache-2.0
// The order of a step's work hangs on streams and events alone: every order that they allow gives the same bits,
// launched or replayed, and each wait that is forgotten shows.
#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.hpp"
#include "cuda/step/training.hpp"
#include "support/host_cuda/host_cuda.hpp"
#include "support/host_cuda/reference_library.hpp"
#include "support/host_cuda/streams.hpp"

namespace convoy::cuda {
namespace {

using host_cuda::Order;

/// Blocks with joins of both kinds, one strided.
TrainingSpec blocks(Launching launching) {
  TrainingSpec spec{.model = small_model("resnet11_bottleneck", "relu", "v1.5"), .batch = 2, .image = 8, .steps = 4};
  spec.precision = Precision::fp16;
  spec.optimiser.loss_scale.start = 1024;
  spec.launching = launching;
  return spec;
}

TrainingResult run(TrainingSpec spec, Order order, long drop_wait = -1, Pace pace = Pace::ahead) {
  host_cuda::start_without(drop_wait, order);
  const auto backend = make_cuda_backend(make_reference_library(90, Fusing::fp16));
  if (pace == Pace::in_step) spec.before_step = [](int) { host_cuda::demand_all(); };
  TrainingResult result = train(*backend, spec);
  if (spec.launching == Launching::replayed) {
    // The first call runs, the second captures and launches; a launch a step from then on.
    EXPECT_EQ(backend->queue().graph_launches(), spec.steps - 1);
  }
  host_cuda::settings() = {};
  return result;
}

bool same(const TrainingResult& a, const TrainingResult& b) {
  return a.set == b.set && a.gradients == b.gradients && a.first_gradients == b.first_gradients &&
         a.logits == b.logits && a.evaluated == b.evaluated &&
         a.counters.sums[Counter::loss] == b.counters.sums[Counter::loss] && a.counters.samples == b.counters.samples;
}

TEST(Order, EveryOrderGivesTheSameBits) {
  const TrainingResult first = run(blocks(Launching::direct), Order::forward);
  EXPECT_EQ(first.counters.samples, 10) << "four steps and an evaluation";
  for (const Launching launching : {Launching::direct, Launching::replayed}) {
    for (const Order order : host_cuda::all_orders) {
      EXPECT_TRUE(same(run(blocks(launching), order), first))
          << "order " << static_cast<int>(order) << (launching == Launching::direct ? "" : ", replayed");
    }
  }
}

/// Whether any order, or any pace of the host, computes something else without this wait, or is refused.
bool shows(const TrainingSpec& spec, long wait, const std::vector<float>& right) {
  for (const auto& [order, pace] : {std::pair(Order::forward, Pace::ahead),
                                    {Order::forward, Pace::in_step},
                                    {Order::reverse, Pace::ahead},
                                    {Order::shuffled, Pace::ahead},
                                    {Order::shuffled, Pace::in_step}}) {
    try {
      if (run(spec, order, wait, pace).set != right) return true;
    } catch (const std::exception&) {
      host_cuda::abandon_all();
      return true;
    }
  }
  return false;
}

/// Of a whole job, set-up and reading included. In a steady step there are two: rows of images against the step that
/// still reads their buffer, and the step against its rows.
TEST(Order, EachForgottenWaitShows) {
  for (const Launching launching : {Launching::direct, Launching::replayed}) {
    TrainingSpec spec = blocks(launching);
    spec.model = small_model("resnet8");
    spec.steps = 6;
    spec.rows = Rows::pinned;
    spec.reading = Reading::set;
    std::vector<long> waits;
    spec.before_step = [&](int) { waits.push_back(host_cuda::counts().waits); };
    const std::vector<float> right = run(spec, Order::forward).set;
    const long all = host_cuda::counts().waits;
    EXPECT_EQ(all - waits.at(3), 3 * 2 + 1) << "two a step, and the download";
    spec.before_step = nullptr;
    for (long wait = 0; wait < all; ++wait)
      EXPECT_TRUE(shows(spec, wait, right)) << "wait " << wait << " of " << all << " could be left out";
  }
}

}  // namespace
}  // namespace convoy::cuda
