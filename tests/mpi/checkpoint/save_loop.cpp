// SPDX-License-Identifier: Apache-2.0
// save_loop FOLDER STEPS: goes on from the newest checkpoint of FOLDER, checks every value of it, then saves `last`
// after every step (with shards after odd ones) and a numbered one after every third, for STEPS steps. Made to be
// killed.
#include <cstdio>
#include <cstdlib>

#include "checkpoint/checkpoint.hpp"
#include "core/replicas.hpp"
#include "support/small_plan.hpp"

namespace convoy {
namespace {
constexpr int replicas = 3;

std::uint64_t shard_seed(Index step, int replica) { return static_cast<std::uint64_t>(step * 100 + replica + 1); }

Index resume(Communicator& communicator, const std::string& folder, const SmallPlan& small, ReplicaRun run) {
  const std::string path = find_checkpoint(communicator, folder);
  if (path.empty()) return 0;
  const LoadSpec spec{.first_replica = run.first, .replica_count = run.count};
  const Checkpoint found = load_checkpoint(path, small.plan, small.layout, spec);
  const Index step = found.meta.position.step;
  const bool whole = found.set.block == formula_set(small, static_cast<std::uint64_t>(step * 100)).block;
  if (!whole) fail(Exit::data, "'{}' holds other values than those of step {}", path, step);
  for (const Shard& shard : found.shards)
    if (shard.set.block != formula_set(small, shard_seed(step, shard.replica)).block)
      fail(Exit::data, "'{}' has a shard of replica {} that is not of step {}", path, shard.replica, step);
  if (found.shards.size() != (step % 2 == 1 ? static_cast<std::size_t>(run.count) : 0U))
    fail(Exit::data, "'{}' has {} shards", path, found.shards.size());
  return step;
}

void save(Communicator& communicator, const std::string& folder, const SmallPlan& small, ReplicaRun run, Index step) {
  CheckpointMeta meta;
  meta.position = {.epoch = step / 10, .step_in_epoch = step % 10, .step = step, .images = step * 64};
  meta.replicas = replicas;
  meta.ranks = communicator.size();
  meta.texts["choices"] = "none";
  const HostSet averaged = formula_set(small, static_cast<std::uint64_t>(step * 100));
  std::vector<Shard> shards;
  for (int r = run.first; step % 2 == 1 && r < run.first + run.count; ++r)
    shards.push_back({r, step, formula_set(small, shard_seed(step, r))});
  save_checkpoint(communicator, folder, "last", small.plan, small.layout, meta, averaged, shards);
  if (step % 3 == 0) {
    const std::string name = fmt::format("step-{:08}", step);
    save_checkpoint(communicator, folder, name, small.plan, small.layout, meta, averaged, shards);
    if (communicator.rank() == 0) drop_old_checkpoints(folder, 2);
  }
}

void run(Session& session, const std::string& folder, Index steps) {
  Communicator communicator(session, {});
  const ReplicaRun own = deal_replicas(replicas, communicator.size(), communicator.rank());
  const SmallPlan small = small_plan(Placing::forward, 1, 1000);
  const bool speaks = communicator.rank() == 0;
  const Index first = resume(communicator, folder, small, own);
  if (speaks) std::printf("resumed %lld\n", static_cast<long long>(first));
  for (Index step = first + 1; step <= first + steps; ++step) {
    std::fflush(stdout);
    save(communicator, folder, small, own, step);
    if (speaks) std::printf("saved %lld\n", static_cast<long long>(step));
  }
  std::fflush(stdout);
}
}  // namespace
}  // namespace convoy

int main(int argc, char** argv) {
  convoy::Session session(argc, argv);
  try {
    if (argc != 3) convoy::fail(convoy::Exit::usage, "usage: save_loop FOLDER STEPS");
    convoy::run(session, argv[1], std::atoll(argv[2]));
    return 0;
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    convoy::abort_job(error.code());
  }
}
