// SPDX-License-Identifier: Apache-2.0
// A job around a quadratic model, small enough to check by hand: a sample (a, b) has the gradient a * w - b, one batch
// norm sees 1 + a, and every step can be any number of samples a replica.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "support/host_device.hpp"
#include "sync/sync.hpp"

namespace convoy {

/// W replicas, 40 parameters, which are a matrix of 5 x 8, in two buckets, one batch norm of 3 channels.
Plan small_plan(int replicas, bool sync_bn = false);
/// With a matrix of 256 x 256 behind the small one, so that every block that a job allocates stands out.
inline constexpr Index large_matrix = 1 << 16;
Plan large_plan(int replicas);

/// Momentum SGD (rate 0.1, momentum 0.9) with masking flags, running statistics and applied steps.
class SmallBackend final : public HostMemory<Backend>, public Updater {
 public:
  /// `keeps_correction`: as OptimiserSpec's.
  SmallBackend(const Plan& plan, const HostDeviceSpec& spec, bool keeps_correction = false)
      : HostMemory<Backend>(spec), plan_(plan), keeps_correction_(keeps_correction) {}

  SetLayout layout(const Plan& plan, const OptimiserSpec& spec) const override;
  void refresh(const ParameterSet& set) override { refreshed.push_back(set.block); }
  Index arena_floats() const override { return 0; }
  void bind(float*) override {}
  void launch(const ParameterSet& set, const float* gradients) override;

  std::unique_ptr<Program> compile(const Plan&, const CompileSpec&) override { return nullptr; }
  std::unique_ptr<Updater> compile(const Plan&, const OptimiserSpec&) override { return nullptr; }
  void set_step(const StepParams&) override {}
  void blend(const ParameterSet&, const ParameterSet&) override {}
  void replay(std::uint64_t, FunctionRef body) override { body(); }
  int keep_resident(const std::uint8_t*, Index, Index) override { return -1; }
  Event counters_ready() override { return {}; }
  Counters take_counters() override { return {}; }
  std::string describe() const override { return "small"; }
  Ceilings measure_ceilings(const CeilingSpec&) override { return {}; }

  std::vector<float*> refreshed;

 private:
  const Plan& plan_;
  const bool keeps_correction_;
};

/// The tree on one rank, as a job of one rank has it, without MPI.
std::unique_ptr<Collectives> make_alone(Device& device);

/// Sample j of a replica's batch, as one parameter sees it.
struct Sample {
  float a, b;
};
Sample sample(Index step, int replica, Index j, Index parameter);

/// Samples of a replica in a step; tests choose even, uneven, with replicas left out.
using Shares = std::function<Index(Index step, int replica)>;
Index even_shares(Index step, int replica);
Index uneven_shares(Index step, int replica);

/// parts / their sum, as an average takes them; shares_test.cpp has how far off they are.
std::vector<double> shares_of(const std::vector<double>& parts);

struct JobSpec {
  SyncSpec sync;
  HostDeviceSpec device;
  Shares shares = even_shares;
  float mean = 1;  ///< of what batch norm sees
  double delay_seconds = 0;
};

/// One rank of a job. With a communicator it takes part in the ranks' job; without, it runs all replicas by itself.
class SmallJob {
 public:
  SmallJob(JobSpec spec, Communicator* ranks);

  /// Collective. Steps [from, to), as the trainer walks them.
  void run(Index from, Index to);
  /// What a program of `replica` writes into the gradient block in this step.
  void write_gradients(Index step, int replica, std::size_t stage);
  /// Of all replicas.
  Index samples_of(Index step) const;
  Range stage_range(std::size_t stage) const { return plan.buckets[stage]; }

  std::vector<float> contents(const ParameterSet& set) const { return {set.block, set.block + layout.count()}; }
  std::vector<float> slice(const ParameterSet& set, const Range& range) const {
    return {set.block + range.begin, set.block + range.end()};
  }

  /// Collective.
  void make_group(Communicator* ranks);

  JobSpec spec;
  Plan plan;
  SmallBackend backend;
  SetLayout layout;
  ReplicaRun replicas;  ///< of this rank
  int turns = 1;
  std::unique_ptr<Collectives> collectives;
  std::unique_ptr<Communicator> group;  ///< null: no groups, or alone
  std::unique_ptr<Collectives> group_collectives;
  float* gradients = nullptr;
  std::unique_ptr<Sync> sync;
  int flagged_replica = -1;  ///< not finite in step flagged_step
  Index flagged_step = -1;
  float gradient_factor = 1;
};

/// One for all tests, since making one takes longer than most tests. Deadlines are short.
Communicator& communicator();

/// Collective. True where all ranks hold the same bits.
bool equal_on_all_ranks(Communicator& ranks, const std::vector<float>& values);
/// Collective. EXPECTs that averages and replicas of the ranks' job have the bits of one that runs all replicas alone.
void expect_same_bits(SmallJob& job, SmallJob& alone, Communicator& ranks);

}  // namespace convoy
