// SPDX-License-Identifier: Apache-2.0
#include "train/weight_check.hpp"

#include <cstring>
#include <optional>

#include "core/hash.hpp"
#include "train/training_job.hpp"

namespace convoy {

std::uint64_t digest_of(const std::vector<float>& block, const SetLayout& layout) {
  const auto bytes = [](const Range& range) { return static_cast<std::size_t>(range.count) * sizeof(float); };
  const std::uint64_t values = hash_bytes(block.data() + layout.values.begin, bytes(layout.values));
  return hash_bytes(block.data() + layout.statistics.begin, bytes(layout.statistics), values);
}

std::optional<CommonBits> common_bits(TrainingJob& job, std::vector<float>& host) {
  if (job.sync->replicas_are_equal()) {
    job.engine->download(job.sync->sets().front(), host, *job.collectives);
    return CommonBits{digest_of(host, job.engine->layout())};
  }
  if (const auto digest = job.sync->received_digest()) return CommonBits{*digest, true};
  return std::nullopt;
}

std::optional<Verdict> compare_ranks(Communicator& communicator, const CommonBits& own) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(communicator.size()), 0);
  std::memcpy(&all[static_cast<std::size_t>(communicator.rank())], &own.digest, sizeof own.digest);
  communicator.sum(all, "digests of the weights");
  std::vector<std::uint64_t> digests(all.size());
  std::memcpy(digests.data(), all.data(), all.size() * sizeof own.digest);
  auto verdict = judge_weights(digests, communicator.hosts());
  if (verdict && own.is_late_average)
    verdict->reason = verdict->certain ? "received another average of the weights than most ranks"
                                       : "received different averages of the weights";
  return verdict;
}

bool Due::is_due(Index step) {
  if (every_ == 0) return false;
  if (next_ < 0) next_ = (step + every_ - 1) / every_ * every_;
  return step >= next_;
}

WeightCheck::WeightCheck(TrainingJob& job) : job_(job), due_(job.config.sync.digest_every) {}

void WeightCheck::step_done(LoopState& state) {
  const Index every = job_.config.sync.digest_every;
  if (every == 0) return;
  Engine& engine = *job_.engine;
  const SetLayout& layout = engine.layout();
  if (job_.average.is_on() && state.position.step % every == 0) {
    job_.average.download(host_, *job_.collectives);
    job_.communicator.require_equal(fmt::format("{:016x}", digest_of(host_, layout)), "moving average of the weights");
  }
  if (!due_.is_due(state.position.step)) return;
  const auto own = common_bits(job_, host_);
  if (!own) return;
  due_.done(state.position.step);
  if (job_.sync->replicas_are_equal()) {
    for (const ParameterSet& set : job_.sync->sets().subspan(1)) {
      engine.download(set, host_, *job_.collectives);
      if (digest_of(host_, layout) != own->digest)
        fail(Exit::internal, "replicas of this rank (from {}) hold different weights after averaging (step {})",
             job_.shape.run.first, state.position.step);
    }
  }
  job_.communicator.require_equal(fmt::format("{:016x}", own->digest),
                                  own->is_late_average ? "received average of the weights" : "weights after averaging");
}

}  // namespace convoy
