// SPDX-License-Identifier: Apache-2.0
// The part of Trainer that looks at what steps have made of losses, gradients and weights.
#include <algorithm>

#include "core/hash.hpp"
#include "train/trainer.hpp"

namespace convoy {

void Trainer::check_finite(const Counters& counters) const {
  const int bad = counters.bad_replica;
  if (bad < job_.run.first || bad >= job_.run.first + job_.run.count) return;  // its owner speaks
  fail(Exit::internal,
       "loss or gradient is not finite in replica {}; that update was not applied. Lower --lr, lengthen "
       "--warmup-epochs or "
       "check the data, and go on with --resume auto",
       bad);
}

namespace {

std::uint64_t digest_of(const std::vector<float>& block, const SetLayout& layout) {
  const auto bytes = [](const Range& range) { return static_cast<std::size_t>(range.count) * sizeof(float); };
  const std::uint64_t values = hash_bytes(block.data() + layout.values.begin, bytes(layout.values));
  return hash_bytes(block.data() + layout.statistics.begin, bytes(layout.statistics), values);
}

}  // namespace

void Trainer::check_weights() {
  const SetLayout& layout = at_.engine.layout();
  if (at_.average.is_on()) {
    std::vector<float> block;
    at_.average.download(block, at_.collectives);
    at_.communicator.require_equal(fmt::format("{:016x}", digest_of(block, layout)), "moving average of the weights");
  }
  const SyncConfig& sync = config_.sync;
  const bool averaged = position_.step % sync.local_steps == 0 || position_.step <= sync.local_start;
  if (sync.mode == SyncMode::weights && !averaged) return;
  std::uint64_t digest = 0;
  for (int i = 0; i < std::max(job_.run.count, 1); ++i) {
    const int replica = job_.run.count == 0 ? -1 : job_.run.first + i;
    const std::uint64_t own = digest_of(at_.engine.download(at_.sync.set(replica), at_.collectives), layout);
    if (i > 0 && own != digest) {
      fail(Exit::internal, "replicas {} and {} hold different weights after averaging (step {})", job_.run.first,
           replica, position_.step);
    }
    digest = own;
  }
  at_.communicator.require_equal(fmt::format("{:016x}", digest), "weights after averaging");
}

void Trainer::monitor() {
  if (job_.rank != 0) return;
  Engine& engine = at_.engine;
  const auto set = engine.download(at_.sync.set(job_.run.first), at_.collectives);
  std::vector<float> gradients(static_cast<std::size_t>(engine.plan().table.parameters.count));
  at_.collectives.await(engine.backend().download(gradients.data(), engine.gradients(),
                                                  engine.plan().table.parameters.count, engine.backend().record()),
                        "download of the gradients");
  std::vector<TensorSummary> values, slopes;
  for (const Parameter& row : engine.plan().table.rows) {
    values.push_back(summarise(row.name, set.data() + row.range.begin, row.range.count));
    slopes.push_back(summarise(row.name, gradients.data() + row.range.begin, row.range.count));
  }
  at_.metrics->tensors("parameters", position_.step, values);
  at_.metrics->tensors("gradients", position_.step, slopes);
}

}  // namespace convoy
