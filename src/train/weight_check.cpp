// SPDX-License-Identifier: Apache-2.0
#include "train/weight_check.hpp"

#include <cstring>
#include <utility>

#include "core/hash.hpp"
#include "train/training_job.hpp"
#include "train/wrong_bits.hpp"

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

WeightCheck::WeightCheck(TrainingJob& job)
    : job_(job), due_(job.config.sync.digest_every), passed_step_(job.resume ? job.state.position.step : -1) {}

void WeightCheck::step_begins(const LoopState& state) {
  if (due_.will_be_due(state.position.step + 1)) job_.sync->digest_next_average();
}

void WeightCheck::step_done(LoopState& state) {
  const Index every = job_.config.sync.digest_every, step = state.position.step;
  if (every == 0) return;
  if (job_.average.is_on() && step % every == 0) {
    job_.average.download(host_, *job_.collectives);
    if (auto verdict = compare_ranks(job_.communicator, {digest_of(host_, job_.engine->layout())})) {
      verdict->reason = verdict->certain ? "held another moving average of the weights than most ranks"
                                         : "held different moving averages of the weights";
      leave(*verdict);
    }
  }
  if (!due_.is_due(step)) return;
  const auto own = common_bits(job_, host_);
  if (!own) return;
  due_.done(step);
  if (job_.sync->replicas_are_equal()) compare_replicas(own->digest);
  if (auto verdict = compare_ranks(job_.communicator, *own)) leave(*verdict);
  passed_step_ = step;
}

void WeightCheck::compare_replicas(std::uint64_t first) {
  std::vector<std::int64_t> differ(static_cast<std::size_t>(job_.shape.ranks), 0);
  for (const ParameterSet& set : job_.sync->sets().subspan(1)) {
    job_.engine->download(set, host_, *job_.collectives);
    if (digest_of(host_, job_.engine->layout()) != first) differ[static_cast<std::size_t>(job_.shape.rank)] = 1;
  }
  job_.communicator.sum(differ, "ranks whose replicas differ");
  Verdict verdict{.wrong = {}, .reason = "held replicas with different weights right after an average"};
  for (std::size_t rank = 0; rank < differ.size(); ++rank)
    if (differ[rank] > 0) verdict.wrong.push_back(static_cast<int>(rank));
  if (!verdict.wrong.empty()) leave(verdict);
}

void WeightCheck::leave(Verdict verdict) {
  leave_wrong(job_, {.verdict = std::move(verdict), .step = job_.state.position.step, .passed_step = passed_step_});
}

}  // namespace convoy
