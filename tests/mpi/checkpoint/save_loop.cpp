// SPDX-License-Identifier: Apache-2.0
// save_loop FOLDER STEPS: goes on from the newest checkpoint of FOLDER, checks every value of it, then saves `last`
// after every step (with shards after odd ones) and a numbered one after every third, for STEPS steps. Made to be
// killed.
#include <cstdio>
#include <cstdlib>

#include "checkpoint/resume.hpp"
#include "checkpoint/saver.hpp"
#include "core/replicas.hpp"
#include "support/small_plan.hpp"

namespace convoy {
namespace {
constexpr int replicas = 3;

std::uint64_t shard_seed(Index step, int replica) { return static_cast<std::uint64_t>(step * 100 + replica + 1); }

Index resume(Communicator& communicator, const std::string& folder, const SmallPlan& small, ReplicaRun run) {
  const auto checkpoint = find_checkpoint(communicator, folder);
  if (!checkpoint) return 0;
  const std::string& path = checkpoint->path;
  const LoadSpec spec{.first_replica = run.first, .replica_count = run.count};
  const Checkpoint found = load_checkpoint(communicator, *checkpoint, small.plan, small.layout, spec);
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

void save(Communicator& communicator, const Fence& fence, const std::string& folder, const SmallPlan& small,
          ReplicaRun run, Index step) {
  CheckpointMeta meta;
  meta.position = {.epoch = step / 10, .step_in_epoch = step % 10, .step = step, .images = step * 64};
  meta.replicas = replicas;
  meta.ranks = communicator.size();
  meta.texts["choices"] = "none";
  Saver saver(communicator, {.folder = folder, .keep = 2, .plan = small.plan, .layout = small.layout, .fence = fence});
  const auto begin = [&](const std::string& name) {
    SaveSpec spec{.name = name, .meta = meta, .with_shards = step % 2 == 1};
    if (communicator.rank() == 0)
      spec.averaged = std::make_shared<HostSet>(formula_set(small, static_cast<std::uint64_t>(step * 100)));
    for (int r = run.first; spec.with_shards && r < run.first + run.count; ++r)
      spec.shards.push_back({r, step, formula_set(small, shard_seed(step, r))});
    saver.begin(std::move(spec));
  };
  begin("last");
  if (step % 3 == 0) begin(fmt::format("step-{:08}", step));
  saver.finish();
  while (const auto result = saver.take_result())
    if (result->code != Exit::ok) fail(result->code, "step {} was not saved", step);
}

void run(Session& session, const std::string& folder, Index steps) {
  Communicator communicator(session, {});
  const ReplicaRun own = deal_replicas(replicas, communicator.size(), communicator.rank());
  const SmallPlan small = small_plan(Placing::forward, 1, 1000);
  const bool speaks = communicator.rank() == 0;
  // Every step is an attempt of its own: `last` is written again and again.
  const auto claim = [&] {
    Index number = speaks ? claim_attempt({folder}, {}) : 0;
    communicator.broadcast(std::as_writable_bytes(std::span(&number, 1)), 0, "number of the attempt");
    Fence fence({folder}, number);
    if (speaks) remove_leftovers(folder, fence);
    communicator.barrier("removal of leftovers");
    return fence;
  };
  claim();
  const Index first = resume(communicator, folder, small, own);
  if (speaks) std::printf("resumed %lld\n", static_cast<long long>(first));
  for (Index step = first + 1; step <= first + steps; ++step) {
    std::fflush(stdout);
    save(communicator, claim(), folder, small, own, step);
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
