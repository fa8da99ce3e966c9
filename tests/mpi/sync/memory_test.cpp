// SPDX-License-Identifier: Apache-2.0
// What a dry run counts is what a job allocates.
#include <gtest/gtest.h>

#include "mpi/sync/small_job.hpp"
#include "support/allocations.hpp"

namespace convoy {
namespace {

struct Case {
  const char* name;
  SyncSpec sync;
};

/// Groups of two where a rank has whole ones.
std::vector<Case> cases(int replicas, int ranks) {
  const SyncSpec gradients{.mode = SyncMode::gradients, .replicas = replicas},
      weights{.mode = SyncMode::weights, .local_steps = 4, .replicas = replicas};
  SyncSpec compressed = gradients, outer = weights, wire = weights, groups = weights;
  compressed.compression = {.kind = Compression::top_k};
  outer.outer = {OuterRule::nesterov, 0.7, 0.9};
  wire.wire = Wire::bf16;
  groups.group = {.steps = 2, .replicas = replicas % (2 * ranks) == 0 ? 2 : replicas};
  return {{"gradients", gradients},   {"compressed gradients", compressed}, {"weights", weights},
          {"outer optimiser", outer}, {"weights in 16 bits", wire},         {"groups", groups}};
}

TEST(SyncMemory, IsWhatItsEstimateSays) {
  const Communicator& comm = communicator();
  // One replica per rank; five, of which reproducible sums keep two; four, so that all groups are complete; and a
  // number that leaves some ranks with one replica fewer.
  for (const int replicas : {comm.size(), 5 * comm.size(), 4 * comm.size(), 4 * comm.size() + 1})
    for (const bool reproducible : {false, true})
      for (auto& [name, sync] : cases(replicas, comm.size())) {
        const Plan plan = large_plan(replicas);
        const ParameterTable& table = plan.table;
        SmallBackend backend(plan, {});
        const SetLayout layout = backend.layout(plan, {});
        SyncSpec spec = sync;
        spec.reproducible = reproducible;
        spec.ranks = comm.size();
        spec.rank = comm.rank();
        const auto collectives = make_alone(backend), group = make_alone(backend);
        const SyncParts parts{backend, *collectives, plan, layout, backend.allocate(table.block()), group.get()};
        const int own = deal_replicas(replicas, spec.ranks, spec.rank).count;
        const Index told = 4 * (parameter_sets(spec, own) * layout.count() + sync_floats(spec, layout, table));
        const long before = count_allocated_bytes();
        const auto made = make_sync(spec, parts);
        const Index taken = count_allocated_bytes() - before;
        // Beside it: ends of blocks, and host memory by the statistics of three channels, by replicas and by ranks.
        EXPECT_GE(taken, told) << name << ", " << replicas << " replicas" << (reproducible ? ", reproducible" : "");
        EXPECT_LE(taken, told + (1 << 15)) << name << ", " << replicas << " replicas";
        EXPECT_GT(told, 4 * large_matrix) << "else what is left free could hide a block";
      }
}

}  // namespace
}  // namespace convoy
