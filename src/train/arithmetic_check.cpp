// SPDX-License-Identifier: Apache-2.0
#include "train/arithmetic_check.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "comm/agreed_error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/trace.hpp"
#include "train/training_job.hpp"
#include "train/wrong_bits.hpp"

namespace convoy {
namespace {

/// What a rank has to know of a batch beside its samples.
struct BatchHead {
  ReplayKey key;
  std::int64_t image_bytes = 0;
  Index valid_count = 0;
  float scale = 0, norm_scale = 0;
};

template <class T>
std::span<std::byte> bytes_of(std::span<T> values) {
  return std::as_writable_bytes(values);
}

}  // namespace

struct ArithmeticCheck::Received {
  ReplayKey key;
  Batch batch;
  std::vector<SampleSpec> samples;
  std::vector<std::uint8_t> images;
};

ArithmeticCheck::ArithmeticCheck(TrainingJob& job)
    : job_(job), every_(job.config.sync.check_arithmetic), weights_due_(every_) {
  if (!is_on()) return;
  run_alike(job.communicator, [&] { refuse(); });
  if (repeats_in_own_set(job.config, job.shape))
    run_agreed(job.communicator, "memory for the check of the arithmetic", [&] {
      const Index count = job.engine->layout().count();
      other_ = ParameterSet{job.engine->backend().allocate(count), count};
    });
}

void ArithmeticCheck::refuse() {
  const JobShape& shape = job_.shape;
  if (std::min(shape.ranks, shape.replicas) < 2)
    fail(Exit::usage,
         "--check-arithmetic needs two ranks with a replica each ({} on {}), since another rank repeats a step; start "
         "more ranks, or drop it",
         counted(shape.replicas, "replica"), counted(shape.ranks, "rank"));
  if (job_.config.sync.sync_bn)
    fail(
        Exit::usage,
        "--check-arithmetic can't repeat a step alone with --sync-bn (its statistics come from all replicas); drop one "
        "of them");
  std::set<std::string> devices;
  for (const RankPlacement& rank : job_.placement.ranks) devices.insert(rank.device);
  if (devices.size() > 1)
    fail(Exit::usage,
         "--check-arithmetic needs equal devices on all ranks ('{}' and '{}' give different bits for the same step); "
         "start the job on nodes of one kind, or drop it",
         *devices.begin(), *devices.rbegin());
}

bool ArithmeticCheck::repeats() const {
  return std::find(repeaters_.begin(), repeaters_.end(), job_.shape.rank) != repeaters_.end();
}

void ArithmeticCheck::share_batch(const ReplicaBatch& own, Received& to) {
  constexpr const char* what = "batch of the step that is checked";
  const int root = repeaters_.front();
  BatchHead head;
  if (job_.shape.rank == root) {
    head.key = own.key;
    head.valid_count = own.input.valid_count;
    head.scale = own.input.scale;
    head.norm_scale = own.input.norm_scale;
    if (own.key.samples > 0) {
      to.samples.assign(own.input.samples.begin(), own.input.samples.end());
      head.image_bytes = job_.data->copy_images(own, to.images);
      for (std::size_t i = 0; i < to.samples.size(); ++i) to.samples[i].sample = static_cast<Index>(i);
    }
  }
  job_.communicator.broadcast(bytes_of(std::span(&head, 1)), root, what);
  to.samples.resize(static_cast<std::size_t>(head.key.samples));
  to.images.resize(static_cast<std::size_t>(head.key.samples * head.image_bytes));
  job_.communicator.broadcast(bytes_of(std::span(to.samples)), root, what);
  job_.communicator.broadcast(bytes_of(std::span(to.images)), root, what);
  to.key = head.key;
  to.batch = {.samples = to.samples,
              .images = to.images.data(),
              .resident = -1,
              .valid_count = head.valid_count,
              .replica = head.key.replica,
              .scale = head.scale,
              .norm_scale = head.norm_scale};
}

const ParameterSet& ArithmeticCheck::share_weights() {
  const int root = repeaters_.front();
  const bool is_own = job_.shape.rank == root;
  if (job_.sync->replicas_are_equal()) return job_.sync->sets().front();
  const ParameterSet& own = job_.sync->sets().front();
  host_.resize(static_cast<std::size_t>(job_.engine->layout().count()));
  if (is_own) job_.engine->download(own, host_, *job_.collectives);
  job_.communicator.broadcast(bytes_of(std::span(host_)), root, "weights of the step that is checked");
  if (is_own || !repeats()) return own;
  job_.engine->upload(*other_, host_, *job_.collectives);
  return *other_;
}

void ArithmeticCheck::digest(const float* from, Index count, std::uint64_t& digest) {
  if (count == 0) return;
  Backend& device = job_.engine->backend();
  const auto floats = static_cast<std::size_t>(count);
  if (device.host_reads()) {
    job_.collectives->await(device.record(), "gradients to be checked");
  } else {
    host_.resize(std::max(host_.size(), floats));
    job_.collectives->await(device.download(host_.data(), from, count, device.record()), "gradients to be checked");
    from = host_.data();
  }
  digest = hash_bytes(from, floats * sizeof(float), digest);
}

void ArithmeticCheck::digest_range(const Range& range, std::uint64_t& to) {
  digest(job_.engine->gradients() + range.begin, range.count, to);
}

std::uint64_t ArithmeticCheck::repeat(const Received& batch, const ParameterSet& weights) {
  Engine& engine = *job_.engine;
  Program& program = engine.training(batch.key.samples, batch.key.phase);
  std::uint64_t digest_of_step = 0;
  program.feed(batch.batch);
  for (std::size_t stage = 0; stage < engine.stages().size(); ++stage) {
    program.launch(stage, weights);
    digest_range(engine.stages()[stage].range, digest_of_step);
  }
  digest(program.loss_per_sample(), batch.key.samples, digest_of_step);
  return digest_of_step;
}

void ArithmeticCheck::compare_weights(const LoopState& state) {
  if (!weights_due_.is_due(state.working.step)) return;
  const TraceSpan span("comparison of the weights");
  const Instant begin = real_clock().now();
  const auto own = common_bits(job_, host_);
  if (!own) return;
  weights_due_.done(state.working.step);
  if (const auto verdict = compare_ranks(job_.communicator, *own)) leave(*verdict, state);
  seconds_ += seconds_since(begin);
}

std::vector<std::uint64_t> ArithmeticCheck::gather(std::uint64_t own) {
  std::vector<std::int64_t> all(repeaters_.size(), 0);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (repeaters_[i] == job_.shape.rank) std::memcpy(&all[i], &own, sizeof own);
  job_.communicator.sum(all, "digests of a step");
  std::vector<std::uint64_t> digests(all.size());
  std::memcpy(digests.data(), all.data(), all.size() * sizeof own);
  return digests;
}

void ArithmeticCheck::batch_ready(const LoopState& state, ReplicaBatch& own) {
  if (!begin_) {
    begin_ = real_clock().now();
    if (job_.resume) passed_step_ = state.working.step;  // the checkpoint that this attempt began with stays
  }
  // The first turn, in which every rank that has replicas computes its first one.
  if (!is_on() || std::exchange(looked_at_step_, state.working.step) == state.working.step) return;
  compare_weights(state);
  if (!is_due(state)) return;
  const TraceSpan span("check of the arithmetic");
  const Instant begin = real_clock().now();
  repeaters_ = choose_repeaters(state.working.step / every_, std::min(job_.shape.ranks, job_.shape.replicas),
                                job_.communicator.hosts());
  Received batch;
  share_batch(own, batch);
  if (batch.key.samples == 0) return;  // the end of an epoch that can't be dealt evenly
  const ParameterSet& set = share_weights();
  job_.training_log.take_counters();  // the repetitions' counts belong to no step
  std::vector<Repetition> repetitions;
  const auto repeat_all = [&] {
    std::vector<std::uint64_t> all = gather(repeats() ? repeat(batch, set) : 0);
    job_.collectives->await(job_.engine->backend().counters_ready(), "counters of a repeated step");
    static_cast<void>(job_.engine->backend().take_counters());
    return all;
  };
  const std::vector<std::uint64_t> first = repeat_all();
  if (std::any_of(first.begin(), first.end(), [&](std::uint64_t each) { return each != first.front(); })) {
    const std::vector<std::uint64_t> second = repeat_all();
    for (std::size_t i = 0; i < first.size(); ++i) repetitions.push_back({repeaters_[i], first[i], second[i]});
    leave(judge(repetitions, job_.communicator.hosts()), state, checked_by());
  }
  agreed_ = first.front();
  own_ = 0;
  seconds_ += seconds_since(begin);
}

void ArithmeticCheck::step_begins(const LoopState& state) {
  if (weights_due_.will_be_due(state.position.step + 1)) job_.sync->digest_next_average();
}

bool ArithmeticCheck::watches_stages(const LoopState& state) const { return is_due(state); }

void ArithmeticCheck::stage_done(const LoopState&, const ReplicaBatch& batch, std::size_t stage) {
  if (!agreed_ || job_.shape.rank != repeaters_.front() || batch.replica != job_.shape.run.first) return;
  const Instant begin = real_clock().now();
  const auto stages = job_.engine->stages();
  digest_range(stages[stage].range, own_);
  if (stage + 1 == stages.size())
    digest(job_.engine->training(batch.key.samples, batch.key.phase).loss_per_sample(), batch.key.samples, own_);
  seconds_ += seconds_since(begin);
}

void ArithmeticCheck::step_done(LoopState& state) {
  if (!agreed_) return;
  std::uint64_t own = own_;
  job_.communicator.broadcast(bytes_of(std::span(&own, 1)), repeaters_.front(), "digest of the step that is checked");
  if (own != *agreed_) {
    leave({.wrong = {repeaters_.front()},
           .reason = "computed other bits in a step than it and other ranks did when they repeated it"},
          state, checked_by());
  }
  agreed_.reset();
  passed_step_ = state.working.step;
  if (++checks_ == 1)
    log::info("arithmetic of step {} checked in {:.3f} s: ranks {} computed the same bits", state.working.step + 1,
              seconds_, fmt::format("{}", fmt::join(repeaters_, ", ")));
}

void ArithmeticCheck::tell() const {
  if (!is_on() || checks_ == 0 || job_.shape.rank != 0) return;
  const double whole = seconds_since(*begin_);
  const double percent = whole > 0 ? 100 * seconds_ / whole : 0;
  log::info("arithmetic: {} repeated by other ranks, always the same bits; that took {:.2f} % of the time",
            counted(checks_, "step"), percent);
  job_.metrics->event("arithmetic", {}, {{"checks", checks_}, {"percent_of_time", percent}});
}

std::string ArithmeticCheck::checked_by() const {
  return fmt::format(", which ranks {} checked", fmt::join(repeaters_, ", "));
}

void ArithmeticCheck::leave(const Verdict& verdict, const LoopState& state, const std::string& checked_by) {
  leave_wrong(
      job_,
      {.verdict = verdict, .step = state.working.step + 1, .checked_by = checked_by, .passed_step = passed_step_});
}

}  // namespace convoy
