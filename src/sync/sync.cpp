// SPDX-License-Identifier: Apache-2.0
#include "sync/sync.hpp"

#include <limits>

#include "backend/compression_layout.hpp"
#include "backend/set_layout.hpp"
#include "core/text.hpp"
#include "sync/modes.hpp"

namespace convoy {

SyncSpec gradient_sums(int replicas, int ranks, int rank) {
  return {.mode = SyncMode::gradients, .replicas = replicas, .ranks = ranks, .rank = rank};
}

namespace {

std::string describe(const OuterSpec& outer) {
  switch (outer.rule) {
    case OuterRule::average:
      return {};
    case OuterRule::momentum:
    case OuterRule::nesterov:
      return fmt::format(", outer {} {} at learning rate {}",
                         outer.rule == OuterRule::momentum ? "momentum" : "Nesterov momentum", outer.momentum,
                         outer.rate);
  }
  fail(Exit::internal, "an outer optimiser without a description");
}

std::string describe(const GroupSpec& group) {
  if (!group.is_on()) return {};
  return fmt::format(", {} in groups of {}", every(group.steps, "step"), counted(group.replicas, "replica"));
}

std::string describe(Wire wire) { return wire == Wire::fp32 ? "" : fmt::format(" in {}", name_of(wire)); }

}  // namespace

bool needs_anchor(const SyncSpec& spec) {
  return spec.mode == SyncMode::weights && (spec.outer.is_on() || spec.wire != Wire::fp32);
}

std::string describe(const SyncSpec& spec) {
  switch (spec.mode) {
    case SyncMode::gradients:
      return "gradients" + describe(spec.wire) + describe(spec.compression);
    case SyncMode::weights:
      return fmt::format("weights {}{}", every(spec.local_steps, "step"), spec.overlap ? ", a period late" : "") +
             describe(spec.group) + describe(spec.outer) + describe(spec.wire);
  }
  fail(Exit::internal, "a sync policy without a description");
}

std::string explain(const SyncSpec& spec) {
  switch (spec.mode) {
    case SyncMode::gradients:
      return spec.replicas == 1
                 ? "--sync gradients: one replica, so there is nothing to average"
                 : "--sync gradients: in every step an all-reduce sums the gradients of the replicas, as for one large batch (as "
                   "DistributedDataParallel and Horovod do)";
    case SyncMode::weights:
      if (spec.replicas == 1 && spec.outer.is_on())
        return fmt::format("--sync weights: one replica, whose weights the outer optimizer moves {}",
                           every(spec.local_steps, "step"));
      if (spec.replicas == 1) return "--sync weights: one replica, so there is nothing to average";
      if (spec.overlap)
        return fmt::format(
            "--sync weights --overlap-average: each replica updates its own weights with its own momentum; their average {} "
            "travels beside the next steps, and reaches the replicas a period late",
            every(spec.local_steps, "step"));
      return fmt::format(
          "--sync weights: each replica updates its own weights with its own momentum, and {} they are averaged{}{}; "
          "--sync gradients does as DistributedDataParallel and Horovod do",
          spec.local_steps == 1 ? "after every step" : every(spec.local_steps, "step"),
          spec.group.is_on() ? fmt::format(", those of a host {}", every(spec.group.steps, "step")) : std::string(),
          spec.outer.is_on() ? ", which the outer optimizer takes as a gradient" : "");
  }
  fail(Exit::internal, "a sync policy without an explanation");
}

int parameter_sets(const SyncSpec& spec, int replicas) {
  switch (spec.mode) {
    case SyncMode::gradients:
      return 1;
    case SyncMode::weights:
      return replicas + 1;  // one more for the average
  }
  fail(Exit::internal, "a sync policy without parameter sets");
}

Index outer_floats(const SyncSpec& spec, const SetLayout& layout) {
  return needs_anchor(spec) ? outer_layout(layout).count() : 0;
}

Index sum_floats(const SyncSpec& spec, const SetLayout& layout, const ParameterTable& table) {
  switch (spec.mode) {
    case SyncMode::gradients:
      return gradient_sum_floats(spec, table);
    case SyncMode::weights:
      return weight_sum_floats(spec, layout);
  }
  fail(Exit::internal, "a sync policy without sums");
}

Index sync_floats(const SyncSpec& spec, const SetLayout& layout, const ParameterTable& table) {
  return outer_floats(spec, layout) + compression_floats(spec, table) + sum_floats(spec, layout, table);
}

Index local_steps_of_checkpoint(const SyncSpec& spec) {
  switch (spec.mode) {
    case SyncMode::gradients:
      return 0;
    case SyncMode::weights:
      return spec.local_steps;
  }
  fail(Exit::internal, "a sync policy that checkpoints don't know");
}

std::string policy_of_checkpoint(Index local_steps) { return local_steps > 0 ? "weights" : "gradients"; }

namespace {

void check(const GroupSpec& group, const SyncSpec& spec) {
  if (spec.mode != SyncMode::weights)
    fail(Exit::usage, "--node-steps {} needs --sync weights (gradients are averaged every step)", group.steps);
  if (group.steps >= spec.local_steps || spec.local_steps % group.steps != 0)
    fail(Exit::usage,
         "--node-steps {} must be a part of --local-steps {} (replicas of a host average more often than all do); give "
         "for instance --local-steps {}",
         group.steps, spec.local_steps, 4 * group.steps);
  if (group.replicas < 1 || spec.replicas % group.replicas != 0)
    fail(Exit::usage, "{} can't be dealt to groups of {} (--node-replicas); choose a divisor",
         counted(spec.replicas, "replica"), group.replicas);
  for (int rank = 0; rank < spec.ranks; ++rank) {
    const ReplicaRun run = deal_replicas(spec.replicas, spec.ranks, rank);
    const int first = run.first % group.replicas;
    const bool whole = first == 0 && run.count % group.replicas == 0;
    if (!whole && first + run.count > group.replicas)
      fail(Exit::usage,
           "{} on {} lie in several groups of {} in part (rank {} has {} to {}), so these have no ranks of their own; "
           "start another number of ranks, or give another --node-replicas",
           counted(spec.replicas, "replica"), counted(spec.ranks, "rank"), group.replicas, rank, run.first,
           run.first + run.count - 1);
  }
}

}  // namespace

namespace {

void check_overlap(const SyncSpec& spec) {
  const auto refuse = [](const char* other) {
    fail(Exit::usage, "--overlap-average is not possible with {}; drop one of them", other);
  };
  if (spec.mode != SyncMode::weights) refuse("--sync gradients, whose all-reduces travel beside backward anyway");
  if (spec.momentum != MomentumPolicy::keep) refuse("--local-momentum average or reset");
  if (spec.outer.is_on()) refuse("--outer-optimizer");
  if (spec.wire != Wire::fp32) refuse("--wire bf16 or fp16");
  if (spec.group.is_on()) refuse("--node-steps");
}

}  // namespace

int group_of_rank(const SyncSpec& spec) {
  const ReplicaRun run = deal_replicas(spec.replicas, spec.ranks, spec.rank);
  const int group = spec.group.replicas;
  if (run.count == 0 || run.count % group == 0) return spec.replicas / group + spec.rank;
  return run.first / group;
}

void check_compression(Compression kind, SyncMode mode, GradientMemory memory) {
  if (kind == Compression::none) return;
  if (mode != SyncMode::gradients)
    fail(Exit::usage,
         "--wire {} needs --sync gradients (changes of weights travel in fp32, bf16 or fp16); give it, or --wire bf16",
         name_of(kind));
  if (memory == GradientMemory::device)
    fail(Exit::usage,
         "--wire {} is not possible on a GPU (the gradients are compressed on CPUs); use --wire bf16, or --device cpu",
         name_of(kind));
}

void check_messages(const SyncSpec& spec, const ParameterTable& table, GradientMemory memory) {
  check_compression(spec.compression.kind, spec.mode, memory);
  const Index all = spec.replicas * compression_layout(table, spec.compression).message_bytes;
  if (all > std::numeric_limits<int>::max())
    fail(
        Exit::usage,
        "--wire {} is not possible: the messages of {} replicas are {} bytes, and every rank would hold more than 2 GB "
        "of them; use --wire powersgd or bf16, or fewer replicas",
        name_of(spec.compression.kind), spec.replicas, all);
}

void check(const SyncSpec& spec, BatchNormSamples norms) {
  if (spec.local_steps < 1) fail(Exit::usage, "--local-steps {} is not possible (1 is the least)", spec.local_steps);
  if (spec.group.is_on()) check(spec.group, spec);
  if (spec.overlap) check_overlap(spec);
  check_compression(spec.compression.kind, spec.mode, GradientMemory::host);
  if (norms == BatchNormSamples::of_all && (spec.mode != SyncMode::gradients || spec.replicas != spec.ranks)) {
    fail(
        Exit::usage,
        "--sync-bn needs --sync gradients and one replica per rank (this job has {} replicas on {} ranks); drop --sync-bn or change --sync, --replicas, --grad-accum-steps",
        spec.replicas, spec.ranks);
  }
}

void copy_model(const SyncParts& parts, const ParameterSet& from, const ParameterSet& to) {
  for (const Range& range : {parts.layout.trained, parts.layout.moving})
    parts.backend.copy(to.block + range.begin, from.block + range.begin, range.count, 1.0F);
}

std::unique_ptr<Sync> make_sync(const SyncSpec& spec, const SyncParts& parts) {
  check(spec, parts.plan.sync_bn ? BatchNormSamples::of_all : BatchNormSamples::of_replica);
  check_messages(spec, parts.plan.table, parts.backend.host_reads() ? GradientMemory::host : GradientMemory::device);
  switch (spec.mode) {
    case SyncMode::gradients:
      return make_gradient_sync(spec, parts);
    case SyncMode::weights:
      return make_weight_sync(spec, parts);
  }
  fail(Exit::internal, "a sync policy that nobody makes");
}

}  // namespace convoy
