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
  host_cuda::abandon_all();  // a test before that ended by an error: the first stream is to be the row's own
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
    host_cuda::others_go_ahead() = true;
    EXPECT_TRUE(same(run(blocks(launching), Order::forward), first)) << "the other streams first";
    host_cuda::others_go_ahead() = false;
    TrainingSpec row = blocks(launching);
    row.options = "one-stream";
    EXPECT_TRUE(same(run(row, Order::forward), first)) << "nothing beside the row";
  }
}

/// Whether any order, or any pace of the host, computes something else without this wait, or is refused.
bool shows(const TrainingSpec& spec, long wait, const std::vector<float>& right) {
  struct Try {
    Order order;
    Pace pace;
    bool others_first;
  };
  bool found = false;
  for (const auto& [order, pace, others_first] : {Try{Order::forward, Pace::ahead, true},
                                                  {Order::forward, Pace::ahead, false},
                                                  {Order::forward, Pace::in_step, false},
                                                  {Order::reverse, Pace::ahead, false},
                                                  {Order::shuffled, Pace::ahead, false},
                                                  {Order::shuffled, Pace::in_step, false}}) {
    host_cuda::others_go_ahead() = others_first;
    try {
      found = run(spec, order, wait, pace).set != right;
    } catch (const std::exception&) {
      host_cuda::abandon_all();
      found = true;
    }
    host_cuda::others_go_ahead() = false;
    if (found) return true;
  }
  return false;
}

/// Weight gradients that leave the row of launches.
long beside(const std::string& description) {
  long count = 0;
  for (std::size_t at = 0; (at = description.find(" beside   weight gradient", at)) != std::string::npos; ++at) ++count;
  return count;
}

/// Of a whole job, set-up and reading included. In a steady step there are two: rows of images against the step that
/// still reads their buffer, and the step against its rows. Where it is launched, and not replayed, there are those of
/// weight gradients for what they read, and of their end.
TEST(Order, EachForgottenWaitShows) {
  for (const Launching launching : {Launching::direct, Launching::replayed}) {
    TrainingSpec spec = blocks(launching);
    spec.model = small_model("resnet8");
    spec.steps = launching == Launching::direct ? 5 : 6;
    spec.rows = Rows::pinned;
    spec.reading = Reading::set;
    std::vector<long> waits;
    spec.before_step = [&](int) { waits.push_back(host_cuda::counts().waits); };
    const TrainingResult result = run(spec, Order::forward);
    const std::vector<float>& right = result.set;
    const long all = host_cuda::counts().waits, inside = beside(result.description);
    EXPECT_EQ(inside, 9) << result.description;
    // In the strided blocks the weight gradients of both branches read what one step has made: the first one waits.
    EXPECT_EQ(all - waits.at(static_cast<std::size_t>(spec.steps) - 3),
              3 * (2 + (launching == Launching::direct ? inside - 2 + 1 : 0)) + 1)
        << "of each step, and the download";
    spec.before_step = nullptr;
    for (long wait = 0; wait < all; ++wait)
      EXPECT_TRUE(shows(spec, wait, right)) << "wait " << wait << " of " << all << " could be left out";
  }
}

}  // namespace
}  // namespace convoy::cuda
