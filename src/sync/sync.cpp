// SPDX-License-Identifier: Apache-2.0
#include "sync/sync.hpp"

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
      return fmt::format(", outer {} {} at rate {}",
                         outer.rule == OuterRule::momentum ? "momentum" : "Nesterov momentum", outer.momentum,
                         outer.rate);
  }
  fail(Exit::internal, "an outer optimiser without a description");
}

std::string describe(Wire wire) { return wire == Wire::fp32 ? "" : fmt::format(" in {}", name_of(wire)); }

}  // namespace

bool needs_anchor(const SyncSpec& spec) {
  return spec.mode == SyncMode::weights && (spec.outer.is_on() || spec.wire != Wire::fp32);
}

std::string describe(const SyncSpec& spec) {
  switch (spec.mode) {
    case SyncMode::gradients:
      return "gradients" + describe(spec.wire);
    case SyncMode::weights:
      return fmt::format("weights {}", every(spec.local_steps, "step")) + describe(spec.outer) + describe(spec.wire);
  }
  fail(Exit::internal, "a sync policy without a description");
}

std::string explain(const SyncSpec& spec) {
  switch (spec.mode) {
    case SyncMode::gradients:
      return spec.replicas == 1
                 ? "--sync gradients: one replica, so there is nothing to average"
                 : "--sync gradients: in every step the replicas sum their gradients, as for one large batch (as "
                   "DistributedDataParallel and Horovod do)";
    case SyncMode::weights:
      if (spec.replicas == 1 && spec.outer.is_on())
        return fmt::format("--sync weights: one replica, whose weights the outer optimizer moves {}",
                           every(spec.local_steps, "step"));
      if (spec.replicas == 1) return "--sync weights: one replica, so there is nothing to average";
      return fmt::format(
          "--sync weights: each replica updates its own weights with its own momentum, and {} they are averaged{}; "
          "--sync gradients does as DistributedDataParallel and Horovod do",
          spec.local_steps == 1 ? "after every step" : every(spec.local_steps, "step"),
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

void check(const SyncSpec& spec, bool sync_bn) {
  if (spec.local_steps < 1) fail(Exit::usage, "--local-steps {} is not possible (1 is the least)", spec.local_steps);
  if (sync_bn && (spec.mode != SyncMode::gradients || spec.replicas != spec.ranks)) {
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
  check(spec, parts.plan.sync_bn);
  switch (spec.mode) {
    case SyncMode::gradients:
      return make_gradient_sync(spec, parts);
    case SyncMode::weights:
      return make_weight_sync(spec, parts);
  }
  fail(Exit::internal, "a sync policy that nobody makes");
}

}  // namespace convoy
