// SPDX-License-Identifier: Apache-2.0
// Two ranks train one network: whole steps of the CUDA backend on the host, gradients or weights staged through pinned
// memory and summed by MPI, against the same job on the CPU backend.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backend/cuda/cuda_backend.hpp"
#include "backend/factory.hpp"
#include "comm/communicator.hpp"
#include "cuda/step/training.hpp"
#include "support/formula.hpp"
#include "support/host_cuda/host_cuda.hpp"
#include "support/host_cuda/reference_library.hpp"
#include "support/mpi_main.hpp"
#include "sync/sync.hpp"

namespace convoy::cuda {
namespace {

constexpr Index classes = 10, batch = 2;

struct JobSpec {
  SyncMode mode = SyncMode::gradients;
  bool sync_bn = false, reproducible = false;
  Index image = 8, steps = 3;
};

Communicator& communicator() {
  static Communicator instance(test_session(), {.warn_seconds = 20, .abort_seconds = 60});
  return instance;
}

/// One replica a rank; the set of this rank's replica after the last step.
std::vector<float> run(Backend& backend, const JobSpec& job, Plan& plan) {
  Communicator& ranks = communicator();
  plan = make_plan(build_graph(small_model("resnet8")),
                   {.replicas = ranks.size(), .bucket_floats = 20000, .sync_bn = job.sync_bn});
  const OptimiserSpec optimiser;
  const SetLayout layout = backend.layout(plan, optimiser);
  CompileSpec compile;
  compile.samples = batch;
  compile.height = compile.width = job.image;
  compile.input = formula_input(job.image, job.image, 3);
  const auto program = backend.compile(plan, compile);
  const auto updater = backend.compile(plan, optimiser);
  float* const gradients = backend.allocate(plan.table.block());
  program->bind(backend.allocate(program->arena_floats()), gradients);
  updater->bind(backend.allocate(std::max<Index>(16, updater->arena_floats())));
  const auto collectives = make_mpi_collectives(ranks, backend,
                                                {.replicas = ranks.size(),
                                                 .reproducible = job.reproducible,
                                                 .max_count = std::max(plan.table.block(), layout.count())});
  const SyncSpec sync_spec{.mode = job.mode,
                           .reproducible = job.reproducible,
                           .replicas = ranks.size(),
                           .ranks = ranks.size(),
                           .rank = ranks.rank()};
  const auto sync = make_sync(sync_spec, backend, *collectives, plan, optimiser, *updater, gradients);
  const int replica = ranks.rank();

  std::vector<float> host(static_cast<std::size_t>(layout.count()), 0.0F);
  const reference::Values values = formula_parameters(plan.table);
  std::transform(values.begin(), values.end(), host.begin(), [](double v) { return static_cast<float>(v); });
  initialise_statistics(plan.table, host.data() + layout.statistics.begin);
  host[static_cast<std::size_t>(layout.state.begin)] = 1;
  const ParameterSet set = sync->set(replica);
  collectives->await(backend.upload(set.block, host.data(), set.count), "upload");
  backend.refresh(set);

  std::vector<std::vector<std::uint8_t>> images;
  for (Index step = 0; step < job.steps; ++step) {
    const std::string name = std::to_string(step) + "/" + std::to_string(replica);
    images.push_back(formula_images("images" + name, batch * job.image * job.image * 3));
    const std::vector<SampleSpec> samples = formula_samples("labels" + name, batch, classes, false);
    backend.set_step({.rate = 0.05F, .momentum = 0.9F, .step = step});
    const Index together = batch * ranks.size();
    Batch fed{.samples = samples, .images = images.back().data(), .valid_count = batch, .replica = replica};
    fed.scale = sync->scale(batch, together);
    fed.norm_scale = 1.0F / static_cast<float>(job.sync_bn ? together : batch);
    program->feed(fed);
    sync->begin_replica(replica, batch);
    for (std::size_t stage = 0; stage < program->stages().size(); ++stage) {
      program->launch(stage, sync->set(replica));
      sync->made_final(stage, program->stages()[stage], replica);
      collectives->poll();
    }
    sync->replica_done(replica, batch);
    sync->step_done(step);
  }
  std::vector<float> result(static_cast<std::size_t>(layout.count()));
  const ParameterSet last = sync->set(replica);
  collectives->await(backend.download(result.data(), last.block, last.count, backend.record()), "download");
  return result;
}

std::vector<float> values_of(const std::vector<float>& set, const Plan& plan) {
  return {set.begin(), set.begin() + plan.table.parameters.count};
}

class Staged : public testing::TestWithParam<JobSpec> {};
INSTANTIATE_TEST_SUITE_P(All, Staged,
                         testing::Values(JobSpec{}, JobSpec{.reproducible = true}, JobSpec{.sync_bn = true},
                                         JobSpec{.mode = SyncMode::weights}));

TEST_P(Staged, JobIsTheCpusInEveryOrder) {
  Plan plan;
  const std::vector<float> expected = run(*make_cpu_backend(1), GetParam(), plan);
  std::vector<float> first;
  for (const host_cuda::Order order : host_cuda::all_orders) {
    host_cuda::settings() = {.order = order};
    const auto backend = make_cuda_backend(make_reference_library(90, Fusing::everything));
    const std::vector<float> found = run(*backend, GetParam(), plan);
    const Distance apart = distance(plan.table, values_of(found, plan), values_of(expected, plan));
    EXPECT_LE(apart.share, 1e-5) << apart.name << ", order " << static_cast<int>(order);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << "order " << static_cast<int>(order);
  }
  host_cuda::settings() = {};
}

/// The set after the last step, where rank 0 forgets this wait.
std::vector<float> run_without(long wait, host_cuda::Order order, const JobSpec& job) {
  host_cuda::start_without(communicator().rank() == 0 ? wait : -1, order);
  const auto backend = make_cuda_backend(make_reference_library(90, Fusing::everything));
  Plan plan;
  return run(*backend, job, plan);
}

bool on_any_rank(bool here) {
  std::int64_t found = here ? 1 : 0;
  communicator().maximum(std::span(&found, 1), "what the ranks saw");
  return found != 0;
}

/// Each shows in one of the orders, or nothing depends on it: where sums are finished one after the other the last wait
/// stands for all, and a host that waits for a download has waited for what was uploaded before it. Synchronised norms
/// of a block's last convolution and of its shortcut are summed one after the other and read together: there the first
/// wait doesn't show. Which waits there are depends on how often the host asks before a message is there, so each
/// number is tried until a job has fewer.
TEST_P(Staged, EachForgottenWaitShows) {
  using host_cuda::Order;
  JobSpec job = GetParam();
  job.image = 4;
  job.steps = 2;
  const Index strided_blocks = 2, hidden = job.sync_bn ? strided_blocks * job.steps : 0;
  const std::vector<float> right = run_without(-1, Order::forward, job);
  constexpr long limit = 200;
  long wait = 0, needless = 0;
  std::vector<long> silent;
  for (bool there = true; there && wait < limit; ++wait) {
    bool shows = false, is_needless = false;
    for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
      if (shows || is_needless || !there) break;
      shows = on_any_rank(run_without(wait, order, job) != right);
      is_needless = on_any_rank(host_cuda::forgot_needless_wait());
      there = on_any_rank(communicator().rank() == 0 && host_cuda::counts().waits > wait);
    }
    if (!shows && !is_needless && there) silent.push_back(wait);
    if (is_needless) ++needless;
  }
  host_cuda::settings() = {};
  EXPECT_EQ(silent.size(), static_cast<std::size_t>(hidden)) << fmt::format("{}", fmt::join(silent, " "));
  EXPECT_GT(wait, 2 * job.steps);
  EXPECT_LT(wait, limit);
  if (communicator().rank() == 0) std::printf("  %ld waits, %ld of them needless\n", wait - 1, needless);
}

}  // namespace
}  // namespace convoy::cuda
