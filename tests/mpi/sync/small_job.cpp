// SPDX-License-Identifier: Apache-2.0
#include "mpi/sync/small_job.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "backend/compression_layout.hpp"
#include "backend/set_layout.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "support/mpi_main.hpp"
#include "sync/set_average.hpp"

namespace convoy {
namespace {

constexpr Index parameters = 40, first_bucket = 16, channels = 3;

class Alone final : public Collectives {
 public:
  explicit Alone(Device& device) : device_(device) {}
  Ticket submit(const Reduction& r) override {
    if (r.parts.empty()) device_.fill(r.out, r.count, 0);
    const bool rounds = r.wire != Wire::fp32;
    for (const Part& part : r.parts)
      if (rounds) device_.round(part.data, r.count, r.wire);
    for (std::size_t i = r.parts.size(); i-- > 0;) {
      if (i + 1 < r.parts.size())
        device_.add(r.out, r.parts[i].data, r.count);
      else if (r.parts[i].data != r.out)
        device_.copy(r.out, r.parts[i].data, r.count, 1);
      if (rounds) device_.round(r.out, r.count, r.wire);
    }
    return 1;
  }
  bool capturable() const override { return true; }
  void poll() override {}
  void finish(Ticket) override {}
  Event read(Ticket, float* host, const float* from, Index n) override {
    return device_.download(host, from, n, device_.record());
  }
  void await(Event event, const char*) override {
    while (!device_.done(event)) continue;
  }
  void gather(std::span<const std::byte> own, std::span<std::byte> all, std::span<const int>, const char*) override {
    std::copy(own.begin(), own.end(), all.begin());
  }
  double take_wait_seconds() override { return 0; }

 private:
  Device& device_;
};

}  // namespace

Sample sample(Index step, int replica, Index j, Index parameter) {
  Random random(3, Stream::synthetic, static_cast<std::uint64_t>(step * 64 + replica),
                static_cast<std::uint64_t>(j * 64 + parameter));
  const float a = 0.5F + random.uniform();
  return {a, 2 * random.uniform() - 1};
}

std::unique_ptr<Collectives> make_alone(Device& device) { return std::make_unique<Alone>(device); }

Plan small_plan(int replicas, bool sync_bn) {
  Plan plan;
  ParameterTable& table = plan.table;
  table.rows = {{.name = "w", .range = {0, parameters}, .shape = {5, 8}}};
  table.parameters = {0, align_floats(parameters)};
  table.norms = {{"bn", 0, {0, channels}, {16, channels}}};
  table.statistics = {table.parameters.end(), 32};
  table.flags = {table.statistics.end(), replicas};
  table.exchange = {align_floats(table.flags.end()), sync_bn ? 64 : 0};
  plan.buckets = {{0, first_bucket}, {first_bucket, table.flags.end() - first_bucket}};
  plan.sync_bn = sync_bn;
  return plan;
}

Plan large_plan(int replicas) {
  Plan plan = small_plan(replicas);
  ParameterTable& table = plan.table;
  table.rows.push_back({.name = "v", .range = {table.parameters.end(), large_matrix}, .shape = {256, 256}});
  table.parameters.count += large_matrix;
  for (Range* range : {&table.statistics, &table.flags, &table.exchange}) range->begin += large_matrix;
  return plan;
}

SetLayout SmallBackend::layout(const Plan& plan, const OptimiserSpec&) const {
  SetLayout layout;
  layout.slots = keeps_correction_ ? slots_with_correction<Sgd>() : Sgd::slots;
  layout.values = layout.trained = {0, plan.table.parameters.count};
  layout.optimiser = {layout.values.end(), static_cast<Index>(layout.slots.size()) * plan.table.parameters.count};
  layout.statistics = {layout.optimiser.end(), plan.table.statistics.count};
  layout.moving = layout.statistics;
  layout.state = {layout.statistics.end(), 16};
  return layout;
}

void SmallBackend::launch(const ParameterSet& set, const float* gradients) {
  const SetLayout at = layout(plan_, {});
  const ParameterTable& table = plan_.table;
  DeviceState& state = *at.device_state(set.block);
  for (Index i = table.flags.begin; i < table.flags.end(); ++i)
    if (gradients[i] != 0) {
      state.skipped += 1;
      return;
    }
  for (Index i = 0; i < parameters; ++i) {
    float& velocity = set.block[at.optimiser.begin + i];
    velocity = 0.9F * velocity + gradients[i];
    set.block[i] -= 0.1F * velocity;
  }
  for (Index i = 0; i < at.statistics.count; ++i) {
    float& running = set.block[at.statistics.begin + i];
    running = 0.9F * running + 0.1F * gradients[table.statistics.begin + i];
  }
  state.applied += 1;
}

Index even_shares(Index, int) { return 4; }
Index uneven_shares(Index step, int replica) { return (step + replica) % 3 == 0 ? 0 : 3 + (step * replica) % 2; }

std::vector<double> shares_of(const std::vector<double>& parts) {
  std::vector<float> shares(parts.size());
  share_one(parts, shares);
  return {shares.begin(), shares.end()};
}

SmallJob::SmallJob(JobSpec job, Communicator* ranks)
    : spec(std::move(job)),
      plan(small_plan(spec.sync.replicas)),
      backend(plan, spec.device, spec.sync.overlap),
      layout(backend.layout(plan, {})) {
  spec.sync.ranks = ranks ? ranks->size() : 1;
  spec.sync.rank = ranks ? ranks->rank() : 0;
  replicas = deal_replicas(spec.sync.replicas, spec.sync.ranks, spec.sync.rank);
  turns = deal_replicas(spec.sync.replicas, spec.sync.ranks, 0).count;
  collectives = ranks ? make_mpi_collectives(*ranks, backend,
                                             {.replicas = spec.sync.replicas,
                                              .reproducible = spec.sync.reproducible,
                                              .wire = spec.sync.wire,
                                              .gathers = spec.sync.compression.is_on(),
                                              .delay_seconds = spec.delay_seconds})
                      : make_alone(backend);
  gradients = backend.allocate(plan.table.block());
  if (spec.sync.group.is_on()) make_group(ranks);
  sync = make_sync(spec.sync, {backend, *collectives, plan, layout, gradients, group_collectives.get()});
  for (int i = 0; i < std::max(replicas.count, 1); ++i) {
    float* block = sync->set(replicas.count > 0 ? replicas.first + i : -1).block;
    for (Index k = 0; k < parameters; ++k) block[k] = 0.1F * static_cast<float>(k % 7);
    for (Index c = 0; c < channels; ++c) block[layout.statistics.begin + 16 + c] = 1;
    layout.device_state(block)->loss_scale = 1024;
  }
  if (const ParameterSet outer = sync->outer(); outer.block != nullptr)
    backend.copy(outer.block, sync->sets().front().block, layout.values.count, 1.0F);
  if (const ParameterSet bases = sync->bases(); bases.count > 0) {
    const std::vector<float> first = first_bases(compression_layout(plan.table, spec.sync.compression));
    backend.upload(bases.block, first.data(), bases.count);
  }
  backend.refreshed.reserve(100'000);
}

void SmallJob::make_group(Communicator* ranks) {
  if (ranks == nullptr) {
    group_collectives = make_alone(backend);
    return;
  }
  check(spec.sync, BatchNormSamples::of_replica);
  group = ranks->part(group_of_rank(spec.sync), {.abort_seconds = 20});
  group_collectives = make_mpi_collectives(
      *group, backend,
      {.replicas = spec.sync.group.replicas, .reproducible = spec.sync.reproducible, .max_count = layout.count()});
}

Index SmallJob::samples_of(Index step) const {
  Index total = 0;
  for (int r = 0; r < spec.sync.replicas; ++r) total += spec.shares(step, r);
  return total;
}

void SmallJob::write_gradients(Index step, int replica, std::size_t stage) {
  const Range range = stage_range(stage);
  const Index count = replica < 0 ? 0 : spec.shares(step, replica);
  backend.fill(gradients + range.begin, range.count, 0);
  if (count == 0) return;
  const float scale = sync->scale(count, samples_of(step));
  const float* w = sync->set(replica).block;
  for (Index i = range.begin; i < std::min(range.end(), parameters); ++i)
    for (Index j = 0; j < count; ++j) {
      const Sample s = sample(step, replica, j, i);
      gradients[i] += scale * (s.a * w[i] - s.b);
    }
  for (Index i = range.begin; i < std::min(range.end(), parameters); ++i) gradients[i] *= gradient_factor;
  if (stage == 0) return;
  const Range& tail = plan.table.statistics;
  for (Index c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (Index j = 0; j < count; ++j) {
      const double a = static_cast<double>(sample(step, replica, j, c).a);
      sum += a;
      squares += a * a;
    }
    const double n = static_cast<double>(count), mean = sum / n;
    const float weight = scale * static_cast<float>(count);
    gradients[tail.begin + c] = weight * (spec.mean + static_cast<float>(mean));
    gradients[tail.begin + 16 + c] = weight * static_cast<float>((squares - n * mean * mean) / (n - 1));
  }
  if (replica == flagged_replica && step == flagged_step) gradients[plan.table.flags.begin + replica] = 1;
}

void SmallJob::run(Index from, Index to) {
  for (Index step = from; step < to; ++step) {
    for (int turn = 0; turn < turns; ++turn) {
      const int replica = turn < replicas.count ? replicas.first + turn : -1;
      sync->begin_replica(replica, replica < 0 ? 0 : spec.shares(step, replica), samples_of(step));
      for (std::size_t stage = 0; stage < plan.buckets.size(); ++stage) {
        write_gradients(step, replica, stage);
        sync->ready(stage, {stage_range(stage), SumTiming::overlapped}, replica);
      }
      sync->replica_done(replica, replica < 0 ? 0 : spec.shares(step, replica), backend);
    }
    sync->step_done(step);
  }
}

Communicator& communicator() {
  static Communicator instance(test_session(), {.warn_seconds = 5, .abort_seconds = 8});
  return instance;
}

bool equal_on_all_ranks(Communicator& ranks, const std::vector<float>& values) {
  const auto digest = static_cast<std::int64_t>(hash_bytes(values.data(), values.size() * sizeof(float)) >> 1);
  std::array<std::int64_t, 2> bounds{digest, -digest};
  ranks.maximum(bounds, "digest");
  return bounds[0] == -bounds[1];
}

void expect_same_bits(SmallJob& job, SmallJob& alone, Communicator& ranks) {
  const auto expected = alone.contents(alone.sync->averaged()), found = job.contents(job.sync->averaged());
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(equal_on_all_ranks(ranks, found));
  for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
    EXPECT_EQ(job.contents(job.sync->set(r)), alone.contents(alone.sync->set(r))) << "replica " << r;
}

}  // namespace convoy
