// SPDX-License-Identifier: Apache-2.0
// Steps over two ranks as the trainer launches them, captured and replayed: sums by NCCL become part of the graph,
// those that are staged through MPI stay between graphs. Against the same job on the CPU backend; how often anything is
// launched; and each wait of a captured step is needed.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_backend.hpp"
#include "backend/factory.hpp"
#include "comm/nccl/module.hpp"
#include "cuda/step/training.hpp"
#include "support/formula.hpp"
#include "support/host_cuda/reference_library.hpp"
#include "support/host_cuda/streams.hpp"
#include "support/host_nccl/host_nccl.hpp"
#include "support/mpi_main.hpp"
#include "sync/sync.hpp"

namespace convoy::cuda {
namespace {

using host_cuda::Order;

constexpr Index classes = 10, batch = 2;

/// Whether the host waits for each step. Some forgotten waits show only where it is ahead, others only where it isn't.
enum class Pace { ahead, in_step };

struct JobSpec {
  Transport transport = Transport::nccl;
  int turns = 1;  ///< replicas a rank
  bool reproducible = false, sync_bn = false;
  Index image = 8, steps = 4;
  Pace pace = Pace::ahead;
};

struct JobResult {
  std::vector<float> set;
  Index stages = 0, launches = 0;  ///< graphs launched in the last step
};

Communicator& ranks() {
  static Communicator instance(test_session(), {.warn_seconds = 20, .abort_seconds = 60});
  return instance;
}

/// Collective.
std::unique_ptr<Collectives> make_sums(const JobSpec& job, Backend& backend, const CollectivesSpec& spec) {
  if (job.transport == Transport::mpi) return make_mpi_collectives(ranks(), backend, spec);
  static const StallPolicy policy{
      .deadline = {.warn_seconds = 0, .abort_seconds = 60}, .rank = ranks().rank(), .explain = {}};
  host_nccl::settings() = {.enqueue =
                               [](cudaStream_t stream, std::function<bool()> work) {
                                 host_cuda::enqueue(stream, [work = std::move(work)] {
                                   while (!work()) std::this_thread::yield();
                                 });
                               },
                           .keep_with_graph = host_cuda::keep_with_graph};
  NcclJob named{.rank = ranks().rank(), .ranks = ranks().size(), .id = {}};
  if (named.rank == 0) named.id = convoy_nccl_entry()->make_id();
  ranks().broadcast(named.id, "broadcast of NCCL's id");
  return convoy_nccl_entry()->make(named, policy, backend, spec);
}

/// Collective. As train/trainer.cpp does it.
JobResult run(Backend& backend, const JobSpec& job, Plan& plan) {
  const int replicas = job.turns * ranks().size();
  plan = make_plan(build_graph(small_model("resnet8")),
                   {.replicas = replicas, .bucket_floats = 20000, .sync_bn = job.sync_bn});
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
  const auto sums = make_sums(job, backend,
                              {.replicas = replicas,
                               .reproducible = job.reproducible,
                               .max_count = std::max(plan.table.block(), layout.count())});
  const auto sync = make_sync({.mode = SyncMode::gradients,
                               .reproducible = job.reproducible,
                               .replicas = replicas,
                               .ranks = ranks().size(),
                               .rank = ranks().rank()},
                              backend, *sums, plan, optimiser, *updater, gradients);

  std::vector<float> host(static_cast<std::size_t>(layout.count()), 0.0F);
  const reference::Values values = formula_parameters(plan.table);
  std::transform(values.begin(), values.end(), host.begin(), [](double v) { return static_cast<float>(v); });
  initialise_statistics(plan.table, host.data() + layout.statistics.begin);
  host[static_cast<std::size_t>(layout.state.begin)] = 1;
  const ParameterSet set = sync->set(ranks().rank() * job.turns);
  sums->await(backend.upload(set.block, host.data(), set.count), "upload");
  backend.refresh(set);

  JobResult result;
  const auto stages = program->stages();
  std::vector<std::vector<std::uint8_t>> images;
  for (Index step = 0; step < job.steps; ++step) {
    const Index before = backend.counts().graph_launches;
    backend.set_step({.rate = 0.05F, .momentum = 0.9F, .step = step});
    for (int turn = 0; turn < job.turns; ++turn) {
      const int replica = ranks().rank() * job.turns + turn;
      const std::string name = std::to_string(step) + "/" + std::to_string(replica);
      images.push_back(formula_images("images" + name, batch * job.image * job.image * 3));
      const std::vector<SampleSpec> samples = formula_samples("labels" + name, batch, classes, false);
      Batch fed{.samples = samples, .images = images.back().data(), .valid_count = batch, .replica = replica};
      fed.scale = sync->scale(batch, batch * replicas);
      fed.norm_scale = 1.0F / static_cast<float>(job.sync_bn ? batch * replicas : batch);
      program->feed(fed);
      const std::uint64_t key = 100 * (static_cast<std::uint64_t>(replica) + 1);
      const auto body = [&] {
        for (std::size_t s = 0; s < stages.size(); ++s) {
          backend.replay(key + s + 1, [&] { program->launch(s, sync->set(replica)); });
          sync->made_final(s, stages[s], replica);
          sums->poll();
        }
        sync->replica_done(replica, batch);
      };
      sync->begin_replica(replica, batch);
      if (sync->capturable(replica)) {
        backend.replay(key, body);
      } else {
        body();
      }
    }
    sync->step_done(step);
    if (job.pace == Pace::in_step) sums->await(backend.record(), "a step");
    result.launches = backend.counts().graph_launches - before;
  }
  result.stages = static_cast<Index>(stages.size());
  result.set.resize(static_cast<std::size_t>(layout.count()));
  sums->await(backend.download(result.set.data(), set.block, set.count, backend.record()), "download");
  return result;
}

std::vector<float> values_of(const std::vector<float>& set, const Plan& plan) {
  return {set.begin(), set.begin() + plan.table.parameters.count};
}

class Captured : public testing::TestWithParam<JobSpec> {};
INSTANTIATE_TEST_SUITE_P(All, Captured,
                         testing::Values(JobSpec{}, JobSpec{.turns = 3}, JobSpec{.turns = 2, .reproducible = true},
                                         JobSpec{.sync_bn = true}, JobSpec{.transport = Transport::mpi},
                                         JobSpec{.transport = Transport::mpi, .turns = 3},
                                         JobSpec{.transport = Transport::mpi, .sync_bn = true}));

TEST_P(Captured, JobIsTheCpusInEveryOrder) {
  const JobSpec& job = GetParam();
  Plan plan;
  JobSpec staged = job;
  staged.transport = Transport::mpi;
  const JobResult expected = run(*make_cpu_backend(1), staged, plan);
  std::vector<float> first;
  for (const Order order : host_cuda::all_orders) {
    host_cuda::settings() = {.order = order};
    const auto backend = make_cuda_backend(make_reference_library(90, Fusing::everything));
    const JobResult found = run(*backend, job, plan);
    EXPECT_EQ(host_nccl::captured_operations(), 0) << "graphs outlive the communicator";
    const Distance apart = distance(plan.table, values_of(found.set, plan), values_of(expected.set, plan));
    EXPECT_LE(apart.share, 1e-5) << apart.name << ", order " << static_cast<int>(order);
    if (first.empty()) first = found.set;
    EXPECT_EQ(found.set, first) << "order " << static_cast<int>(order);
    EXPECT_GT(found.stages, 2);
    // A graph a turn; where sums wait for the host one a stage in the last turn.
    EXPECT_EQ(found.launches, job.transport == Transport::nccl ? job.turns : job.turns - 1 + found.stages);
  }
  host_cuda::settings() = {};
}

/// Nothing: the wait was noticed by an error. Both ranks forget the same wait, so they go the same way.
std::vector<float> run_without(long wait, Order order, const JobSpec& job) {
  host_cuda::start_without(wait, order);
  try {
    const auto backend = make_cuda_backend(make_reference_library(90, Fusing::everything));
    Plan plan;
    return run(*backend, job, plan).set;
  } catch (const Error&) {
    host_cuda::abandon_all();
    return {};
  }
}

bool on_any_rank(bool here) {
  std::int64_t found = here ? 1 : 0;
  ranks().maximum(std::span(&found, 1), "what the ranks saw");
  return found != 0;
}

/// Of a step that runs, one that is captured, and one that is replayed. Where sums are finished one after the other the
/// last wait stands for all: those are needless. The first wait is that of sums that are thrown away.
TEST(CapturedSums, EachForgottenWaitShows) {
  std::vector<std::pair<Order, Pace>> tries = {
      {Order::forward, Pace::ahead}, {Order::forward, Pace::in_step}, {Order::reverse, Pace::ahead}};
  for (int i = 0; i < 8; ++i) tries.emplace_back(Order::shuffled, i % 2 == 0 ? Pace::ahead : Pace::in_step);
  for (const bool reproducible : {false, true}) {
    JobSpec job{.reproducible = reproducible, .image = 4, .steps = 3};
    const std::vector<float> right = run_without(-1, Order::forward, job);
    const long waits = host_cuda::counts().waits;
    std::vector<long> silent;
    long needless = 0;
    for (long wait = 1; wait < waits; ++wait) {
      bool shows = false, is_needless = false;
      for (const auto& [order, pace] : tries) {
        if (shows || is_needless) break;
        job.pace = pace;
        shows = on_any_rank(run_without(wait, order, job) != right);
        is_needless = !shows && pace == Pace::ahead && on_any_rank(host_cuda::forgot_needless_wait());
      }
      if (is_needless) ++needless;
      if (!shows && !is_needless) silent.push_back(wait);
    }
    host_cuda::settings() = {};
    EXPECT_LT(needless, waits - 1) << "no wait of the job's is needed";
    EXPECT_TRUE(silent.empty()) << fmt::format("{} of {}", fmt::join(silent, " "), waits);
    if (ranks().rank() == 0) std::printf("  %ld waits, %ld of them needless\n", waits, needless);
  }
}

}  // namespace
}  // namespace convoy::cuda
