// SPDX-License-Identifier: Apache-2.0
#include "train/weight_check.hpp"

#include <optional>

#include "core/hash.hpp"
#include "train/training_job.hpp"

namespace convoy {

std::uint64_t digest_of(const std::vector<float>& block, const SetLayout& layout) {
  const auto bytes = [](const Range& range) { return static_cast<std::size_t>(range.count) * sizeof(float); };
  const std::uint64_t values = hash_bytes(block.data() + layout.values.begin, bytes(layout.values));
  return hash_bytes(block.data() + layout.statistics.begin, bytes(layout.statistics), values);
}

void WeightCheck::step_done(LoopState& state) {
  const Index every = job_.config.sync.digest_every;
  if (every == 0 || state.position.step % every != 0) return;
  Engine& engine = *job_.engine;
  const SetLayout& layout = engine.layout();
  if (job_.average.is_on()) {
    std::vector<float> block;
    job_.average.download(block, *job_.collectives);
    job_.communicator.require_equal(fmt::format("{:016x}", digest_of(block, layout)), "moving average of the weights");
  }
  if (!job_.sync->replicas_are_equal()) return;
  std::optional<std::uint64_t> digest;
  for (const ParameterSet& set : job_.sync->sets()) {
    const std::uint64_t own = digest_of(engine.download(set, *job_.collectives), layout);
    if (digest.value_or(own) != own) {
      fail(Exit::internal, "replicas of this rank (from {}) hold different weights after averaging (step {})",
           job_.shape.run.first, state.position.step);
    }
    digest = own;
  }
  job_.communicator.require_equal(fmt::format("{:016x}", digest.value_or(0)), "weights after averaging");
}

}  // namespace convoy
