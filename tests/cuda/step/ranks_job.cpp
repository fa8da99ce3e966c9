// SPDX-License-Identifier: Apache-2.0
#include "cuda/step/ranks_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "backend/cuda/cuda_backend.hpp"
#include "backend/factory.hpp"
#include "support/formula.hpp"
#include "support/host_cuda/reference_library.hpp"
#include "support/host_cuda/streams.hpp"
#include "support/mpi_main.hpp"

namespace convoy::cuda {
namespace {

using host_cuda::Order;

constexpr Index classes = 10, batch = 2, channels = 3;

std::unique_ptr<CudaBackend> host_backend() {
  return make_cuda_backend(make_reference_library(90, Fusing::everything));
}

/// Collective.
void start_from_formula(Backend& backend, Collectives& sums, const Plan& plan, const SetLayout& layout,
                        const ParameterSet& set) {
  std::vector<float> host(static_cast<std::size_t>(layout.count()), 0.0F);
  const reference::Values values = formula_parameters(plan.table);
  std::transform(values.begin(), values.end(), host.begin(), [](double v) { return static_cast<float>(v); });
  initialise_statistics(plan.table, host.data() + layout.statistics.begin);
  host[static_cast<std::size_t>(layout.state.begin)] = 1;
  sums.await(backend.upload(set.block, host.data(), set.count), "upload");
  backend.refresh(set);
}

}  // namespace

Communicator& ranks() {
  static Communicator instance(test_session(), {.warn_seconds = 20, .abort_seconds = 60});
  return instance;
}

std::unique_ptr<Collectives> staged_sums(Backend& backend, const CollectivesSpec& spec) {
  return make_mpi_collectives(ranks(), backend, spec);
}

JobResult run(Backend& backend, const JobSpec& job) {
  const int replicas = job.turns * ranks().size(), first = job.turns * ranks().rank();
  JobResult result;
  GraphSpec model = small_model(job.model);
  model.image_size = job.image;
  const Plan& plan = result.plan =
      make_plan(build_graph(model), {.replicas = replicas, .bucket_floats = 20000, .sync_bn = job.sync_bn});
  OptimiserSpec optimiser;
  optimiser.loss_scale.grow_every = 1;  // so that the device's state is another after each step
  const SetLayout layout = backend.layout(plan, optimiser);
  CompileSpec compile;
  compile.samples = batch;
  compile.height = compile.width = job.image;
  compile.input = formula_input(job.image, job.image, channels);
  compile.options = job.kernels;
  const auto program = backend.compile(plan, compile);
  const auto updater = backend.compile(plan, optimiser);
  float* const gradients = backend.allocate(plan.table.block());
  program->bind(backend.allocate(program->arena_floats()), gradients);
  updater->bind(backend.allocate(std::max<Index>(16, updater->arena_floats())));
  const auto sums = job.sums(backend, {.replicas = replicas,
                                       .reproducible = job.reproducible,
                                       .max_count = std::max(plan.table.block(), layout.count())});
  const auto sync = make_sync({.mode = job.mode,
                               .reproducible = job.reproducible,
                               .replicas = replicas,
                               .ranks = ranks().size(),
                               .rank = ranks().rank()},
                              {backend, *sums, plan, layout, gradients});
  for (int turn = 0; turn < (job.mode == SyncMode::weights ? job.turns : 1); ++turn)
    start_from_formula(backend, *sums, plan, layout, sync->set(first + turn));

  const auto stages = program->stages();
  std::vector<std::vector<std::uint8_t>> images;
  const auto replay = [&](std::uint64_t key, FunctionRef body) {
    if (job.launching == Launching::direct) return body();
    backend.replay(key, body);
  };
  for (Index step = 0; step < job.steps; ++step) {
    const Index before = backend.counts().graph_launches;
    backend.set_step({.learning_rate = 0.05F, .step = step, .options = {{0.9}}});
    for (int replica = first; replica < first + job.turns; ++replica) {
      const std::string name = std::to_string(step) + "/" + std::to_string(replica);
      images.push_back(formula_images("images" + name, batch * job.image * job.image * channels));
      const std::vector<SampleSpec> samples = formula_samples("labels" + name, batch, classes, false);
      Batch fed{.samples = samples, .images = images.back().data(), .valid_count = batch, .replica = replica};
      fed.scale = sync->scale(batch, batch * replicas);
      fed.norm_scale = 1.0F / static_cast<float>(job.sync_bn ? batch * replicas : batch);
      program->feed(fed);
      sync->begin_replica(replica, batch, batch * replicas);
      const std::uint64_t key = 100 * (static_cast<std::uint64_t>(replica) + 1);
      const auto body = [&] {
        for (std::size_t s = 0; s < stages.size(); ++s) {
          replay(key + s + 1, [&] { program->launch(s, sync->set(replica)); });
          sync->ready(s, stages[s], replica);
        }
        sync->replica_done(replica, batch, *updater);
      };
      if (sync->capturable(replica)) {
        replay(key, body);
      } else {
        body();
      }
    }
    sync->step_done(step);
    if (job.pace == Pace::in_step) host_cuda::demand_all();
    result.launches = backend.counts().graph_launches - before;
  }
  result.stages = static_cast<Index>(stages.size());
  result.set.resize(static_cast<std::size_t>(layout.count()));
  const ParameterSet& last = sync->set(first);
  sums->await(backend.download(result.set.data(), last.block, last.count, backend.record()), "download");
  return result;
}

void expect_the_cpus(const JobSpec& job) {
  const auto values = [](const JobResult& result) {
    return std::vector<float>(result.set.begin(), result.set.begin() + result.plan.table.parameters.count);
  };
  JobSpec on_cpu = job;
  on_cpu.sums = staged_sums;
  const std::vector<float> expected = values(run(*make_cpu_backend(1), on_cpu));
  std::vector<float> first;
  for (const Order order : host_cuda::all_orders) {
    SCOPED_TRACE(static_cast<int>(order));
    host_cuda::settings() = {.order = order};
    const auto backend = host_backend();
    const JobResult found = run(*backend, job);
    const Distance apart = distance(found.plan.table, values(found), expected);
    EXPECT_LE(apart.share, 1e-5) << apart.name;
    if (first.empty()) first = found.set;
    EXPECT_EQ(found.set, first);
    EXPECT_GT(found.stages, 2);
    const bool waits = job.mode == SyncMode::gradients && job.sums == staged_sums;
    EXPECT_EQ(found.launches, job.launching == Launching::direct ? 0
                              : waits                            ? job.turns - 1 + found.stages
                                                                 : job.turns);
  }
  host_cuda::settings() = {};
}

namespace {

/// Collective. Nothing: the wait was noticed by an error. Under NCCL all ranks forget the wait with this number, so
/// that they end alike. Where MPI is between, which waits there are depends on how often the host asks before a message
/// is there: there rank 0 forgets one of its own.
std::vector<float> run_without(long wait, Order order, const JobSpec& job, bool others_first = false) {
  host_cuda::others_go_ahead() = others_first;
  host_cuda::start_without(job.sums != staged_sums || ranks().rank() == 0 ? wait : -1, order);
  try {
    const auto backend = host_backend();
    return run(*backend, job).set;
  } catch (const Error&) {
    host_cuda::abandon_all();
    return {};
  }
}

/// Collective.
bool on_any_rank(bool here) {
  std::int64_t found = here ? 1 : 0;
  ranks().maximum(std::span(&found, 1), "what the ranks saw");
  return found != 0;
}

}  // namespace

void expect_each_wait_is_needed(JobSpec job) {
  job.kernels = "one-stream";  // waits within a stage are tested without other ranks, in order_test.cpp
  struct Try {
    Order order;
    Pace pace;
    bool others_first;
  };
  std::vector<Try> tries;
  for (const Pace pace : {Pace::ahead, Pace::in_step}) tries.push_back({Order::forward, pace, false});
  for (const Pace pace : {Pace::ahead, Pace::in_step}) tries.push_back({Order::forward, pace, true});
  for (const Pace pace : {Pace::ahead, Pace::in_step}) tries.push_back({Order::reverse, pace, false});
  for (int i = 0; i < 8; ++i) tries.push_back({Order::shuffled, i % 2 == 0 ? Pace::ahead : Pace::in_step, false});
  const std::vector<float> right = run_without(-1, Order::forward, job);
  ASSERT_FALSE(right.empty());
  constexpr long limit = 200;
  long wait = 0;
  for (bool there = true; there && wait < limit; ++wait) {
    bool shows = false, needless = false;
    for (const auto& [order, pace, others_first] : tries) {
      job.pace = pace;
      shows = on_any_rank(run_without(wait, order, job, others_first) != right);
      there = shows || on_any_rank(ranks().rank() == 0 && host_cuda::counts().waits > wait);
      needless = needless || on_any_rank(pace == Pace::ahead && host_cuda::forgot_needless_wait());
      if (shows || needless || !there) break;
    }
    EXPECT_TRUE(shows || !there) << "wait " << wait << (needless ? " is needless" : " is missed by nothing");
  }
  host_cuda::settings() = {};
  host_cuda::others_go_ahead() = false;
  EXPECT_GT(wait - 1, job.steps) << "a step waits for its rows";
  EXPECT_LT(wait, limit);
  if (ranks().rank() == 0) std::printf("  %ld waits\n", wait - 1);
}

}  // namespace convoy::cuda
