// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "config/hash.hpp"
#include "config/print.hpp"
#include "core/clock.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/version.hpp"
#include "core/wall_clock.hpp"
#include "run/run_state.hpp"
#include "train/load_sets.hpp"
#include "train/residuals.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

constexpr double slow_bytes_per_second = 1e8, slow_start_seconds = 1;
// Of --save-every-minutes auto, until a save has been measured.
constexpr double longest_first_interval = 60;
constexpr int failures_tolerated = 2;

// The sums of an epoch among the numbers of a checkpoint; 0 where an older program wrote it.

std::map<std::string, double> numbers_of(const JobSums& epoch) {
  std::map<std::string, double> numbers{{"epoch_images", static_cast<double>(epoch.counters.samples)},
                                        {"epoch_seconds", epoch.seconds.step},
                                        {"epoch_data_seconds", epoch.seconds.data},
                                        {"epoch_compute_seconds", epoch.seconds.compute},
                                        {"epoch_comm_seconds", epoch.seconds.comm}};
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    numbers[fmt::format("epoch_{}", counter_table[i].name)] = epoch.counters.sums[i];
  return numbers;
}

JobSums sums_in(const std::map<std::string, double>& numbers) {
  const auto number = [&](const std::string& name) {
    const auto at = numbers.find("epoch_" + name);
    return at == numbers.end() ? 0.0 : at->second;
  };
  JobSums epoch;
  epoch.counters.samples = static_cast<Index>(number("images"));
  for (std::size_t i = 0; i < counter_table.size(); ++i) epoch.counters.sums[i] = number(counter_table[i].name);
  epoch.seconds = {.step = number("seconds"),
                   .data = number("data_seconds"),
                   .compute = number("compute_seconds"),
                   .comm = number("comm_seconds")};
  return epoch;
}

/// Of the epoch that goes on: phases may have several; 0: an older program wrote it.
Index steps_of_epoch(const CheckpointMeta& meta) {
  for (const char* name : {"steps_of_epoch", "steps_per_epoch"})
    if (const auto at = meta.numbers.find(name); at != meta.numbers.end()) return static_cast<Index>(at->second);
  return 0;
}

/// The same fraction of the epoch in steps of another length; the end of an epoch is the start of the next. `step`
/// stays.
Position same_fraction(const Position& position, Index steps_then, Index steps_now) {
  Position moved = position;
  const double fraction =
      steps_then > 0 ? static_cast<double>(position.step_in_epoch) / static_cast<double>(steps_then) : 0;
  moved.step_in_epoch = std::llround(fraction * static_cast<double>(steps_now));
  if (moved.step_in_epoch >= steps_now) {
    ++moved.epoch;
    moved.step_in_epoch = 0;
  }
  return moved;
}

}  // namespace

Checkpointing::Checkpointing(TrainingJob& job)
    : job_(job),
      saver_(job.communicator, {.folder = job.config.checkpoint.folder,
                                .keep = job.config.checkpoint.keep,
                                .plan = job.engine->plan(),
                                .layout = job.engine->layout(),
                                .fence = job.attempt.fence,
                                .timeout_seconds = job.config.sync.deadline.abort_seconds}) {
  job.limit.reserve(job.config.checkpoint.save ? guessed_cost() : 0);
}

void Checkpointing::leave_other_lines(const std::optional<FoundCheckpoint>& from) {
  const std::string& folder = job_.config.checkpoint.folder;
  Lineage line;
  if (from) {
    record_begin(job_.attempt, from->path, from->file.meta.attempt, from->file.meta.position.step);
    line = Lineage(job_.attempt.folders.back());
  }
  if (!job_.config.checkpoint.save) return;
  std::vector<std::string> files = list_abandoned(folder, from ? &line : nullptr);
  if (files.empty()) return;
  log::warn("'{}' holds checkpoints of an earlier {} ({}): they move to '{}.old-N' when this attempt saves its first",
            folder, from ? "line of this run" : "run", fmt::join(files, ", "), folder);
  try {
    require_way_aside(folder, job_.attempt.fence);
  } catch (const Error&) {
    if (from) forget_begin(job_.attempt);
    throw;
  }
  saver_.put_aside_first(std::move(files));
}

Position Checkpointing::resume(const FoundCheckpoint& found) {
  const std::string& path = found.path;
  Checkpoint loaded = load_checkpoint(job_.communicator, found, job_.engine->plan(), job_.engine->layout(),
                                      {.first_replica = job_.shape.run.first, .replica_count = job_.shape.run.count});
  const CheckpointMeta& meta = loaded.meta;
  const auto number = [&](const char* name, double otherwise) {
    const auto at = meta.numbers.find(name);
    return at == meta.numbers.end() ? otherwise : at->second;
  };
  best_top1 = found.other_val ? -1 : number("best_top1", -1);
  validations_since_best = found.other_val ? 0 : static_cast<Index>(number("validations_since_best", 0));
  job_.optimiser.plateau = {static_cast<Index>(number("plateau_cuts", 0)),
                            static_cast<Index>(number("plateau_waited", 0))};
  validated_step = static_cast<Index>(number("validated_step", -1));
  if (meta.position.step_in_epoch > 0) sums_of_epoch = sums_in(meta.numbers);
  job_.engine->adopt_loss_scale(loaded.set.block);
  for (Shard& shard : loaded.shards)
    if (!shard.set.block.empty()) job_.engine->adopt_loss_scale(shard.set.block);
  Position position = meta.position;
  const Index steps_then = steps_of_epoch(meta), steps_now = job_.shape.timeline.steps(position.epoch);
  const std::string policy_then = policy_of_checkpoint(meta.local_steps),
                    policy_now = policy_of_checkpoint(local_steps_of_checkpoint(job_.shape.sync));
  const bool exactly = meta.replicas == job_.shape.replicas && steps_then == steps_now && policy_then == policy_now &&
                       position.step == job_.shape.timeline.first_step(position.epoch) + position.step_in_epoch;
  job_.spikes.read(meta);
  load_sets(job_, loaded.set.block);
  resume_average(job_, loaded);
  // An anchor without an optimiser is what the sets began the period with.
  const bool has_anchor = exactly || job_.shape.sync.outer.is_on();
  load_outer(job_, loaded.set.block, has_anchor ? loaded.outer : HostSet{});
  load_residuals(job_, &loaded);
  const bool has_outer = job_.sync->outer().block != nullptr;
  if (has_outer && !meta.has_outer && job_.shape.sync.outer.is_on())
    log::info("'{}' holds no state of an outer optimizer: it starts from the weights", path);
  if (!has_outer && meta.has_outer)
    log::info(
        "'{}' holds the weights of the last average, which --outer-optimizer or --wire needed: this job drops them",
        path);
  const auto then = meta.texts.find("configuration");
  if (job_.communicator.rank() == 0 && then != meta.texts.end())
    for (const std::string& change : changed_parts(then->second, job_.config))
      log::warn("{}, since '{}'", change, path);
  if (exactly) {
    if (const std::string difference = what_differs(meta); !difference.empty()) {
      log::info("{} from that of '{}': training continues, but not bit for bit", difference, path);
    }
    load_replicas(job_, loaded.shards);
  } else {
    position = place_of(meta);
    if (position.step_in_epoch == 0) sums_of_epoch = {};
    // Steps count otherwise now.
    validated_step = validated_step == meta.position.step ? position.step : -1;
    log::info(
        "'{}' was written by {} replicas with {} steps per epoch and --sync {}; this job has {} replicas, {} steps and --sync {}: it continues from the averaged model at step {} of epoch {}",
        path, meta.replicas, steps_then, policy_then, job_.shape.replicas, steps_now, policy_now,
        position.step_in_epoch, position.epoch + 1);
  }
  from_last = std::filesystem::path(path).lexically_normal() ==
              (std::filesystem::path(job_.config.checkpoint.folder) / "last.h5").lexically_normal();
  const bool at_end = position.step >= job_.shape.total_steps && position.step_in_epoch == 0;
  log::info("resumed from '{}': {} {}, step {}", path, at_end ? "end of epoch" : "epoch",
            at_end ? position.epoch : position.epoch + 1, position.step);
  return position;
}

Position Checkpointing::place_of(const CheckpointMeta& meta) const {
  const Timeline& timeline = job_.shape.timeline;
  Position place = same_fraction(meta.position, steps_of_epoch(meta), timeline.steps(meta.position.epoch));
  place.step = timeline.first_step(place.epoch) + place.step_in_epoch;
  return place;
}

void Checkpointing::return_to(const FoundCheckpoint& found) {
  Checkpoint loaded = load_checkpoint(job_.communicator, found, job_.engine->plan(), job_.engine->layout(),
                                      {.first_replica = job_.shape.run.first, .replica_count = job_.shape.run.count});
  job_.engine->adopt_loss_scale(loaded.set.block);
  for (Shard& shard : loaded.shards)
    if (!shard.set.block.empty()) job_.engine->adopt_loss_scale(shard.set.block);
  load_sets(job_, loaded.set.block);
  resume_average(job_, loaded);
  // Of a job of this run that had other replicas only the averaged model is of use.
  const bool same =
      loaded.meta.replicas == job_.shape.replicas &&
      policy_of_checkpoint(loaded.meta.local_steps) == policy_of_checkpoint(local_steps_of_checkpoint(job_.shape.sync));
  load_outer(job_, loaded.set.block, same || job_.shape.sync.outer.is_on() ? loaded.outer : HostSet{});
  load_residuals(job_, &loaded);
  load_replicas(job_, same ? loaded.shards : std::vector<Shard>{});
  averaged_step_ = -1;
}

std::optional<std::string> Checkpointing::put_newer_aside(const Stamp& than, Best best) {
  const std::string& folder = job_.config.checkpoint.folder;
  NewerCheckpoints newer = list_newer(folder, than, Lineage(job_.attempt.folders.back()));
  if (best == Best::stays)
    std::erase_if(newer.files, [](const std::string& file) { return file.starts_with("best."); });
  if (newer.files.empty()) return std::string();
  if (!newer.leaves_one) return std::nullopt;
  put_aside(folder, newer.files, aside_, job_.attempt.fence);
  job_.state_file->note([&](RunState& run) {
    const std::string left = resolve_checkpoint(folder);
    run.checkpoint = path_from(job_.config.output.folder, left);
    run.checkpoint_step = place_of(read_main_meta(left).meta).step;
    run.checkpoint_time = time_of_file(left);
  });
  return aside_;
}

std::string Checkpointing::what_differs(const CheckpointMeta& meta) const {
  const auto device = meta.texts.find("device");
  const bool other_device = device != meta.texts.end() && device->second != job_.engine->backend().describe();
  if (meta.configuration_hash != configuration_hash(job_.config)) {
    const auto at = meta.texts.find("configuration");
    const std::string then = at == meta.texts.end() ? "" : at->second;
    if (const std::string options = rounding_options(then, job_.config); !options.empty()) {
      // The device's text has the threads, too.
      const bool told = !other_device || options.find("threads") != std::string::npos;
      return fmt::format("the way to compute ({}{}) differs", options, told ? "" : "; another device");
    }
    if (!changed_parts(then, job_.config).empty()) return {};  // they have been told
    return "the configuration differs";
  }
  return other_device ? "the device differs" : "";
}

double Checkpointing::guessed_cost() const {
  const Index floats = job_.engine->layout().count() * (job_.average.is_on() ? 2 : 1) + job_.sync->outer().count;
  const double bytes = static_cast<double>(floats) * sizeof(float);
  return slow_start_seconds + bytes / slow_bytes_per_second;
}

double Checkpointing::interval_seconds() const {
  const CheckpointConfig& config = job_.config.checkpoint;
  if (!config.save_auto) return 60 * config.save_every_minutes;
  // Young, Communications of the ACM 17 (1974): the time lost to saves and to failures together is least at this
  // interval.
  const auto best = [&](double cost) { return std::sqrt(2 * cost * 3600 * config.mean_failure_hours); };
  return cost_seconds_ > 0 ? best(cost_seconds_) : std::min(best(guessed_cost()), longest_first_interval);
}

bool Checkpointing::minutes_are_up() const {
  const double interval = interval_seconds();
  return interval > 0 && job_.communicator.rank() == 0 && seconds_since(saved_at_) >= interval;
}

CheckpointMeta Checkpointing::describe(const Position& position, const JobSums& epoch) const {
  CheckpointMeta meta;
  meta.run = job_.attempt.record.run;
  meta.attempt = job_.attempt.record.number;
  meta.position = position;
  meta.replicas = job_.shape.replicas;
  meta.ranks = job_.shape.ranks;
  meta.local_steps = local_steps_of_checkpoint(job_.shape.sync);
  meta.ema_decay = job_.config.average_decay();
  meta.has_outer = job_.sync->outer().block != nullptr;
  meta.compression = job_.shape.sync.compression;
  meta.plan_digest = job_.engine->plan().digest;
  meta.configuration_hash = configuration_hash(job_.config);
  meta.texts = {{"model", job_.engine->plan().graph.model},
                {"choices", job_.engine->choices()},
                {"configuration", to_ini(job_.config)},
                {"device", job_.engine->backend().describe()},
                {"build", build_id()}};
  const std::size_t phase = job_.shape.timeline.phase(position.data_epoch());
  meta.data = data_of(job_.phases[phase]);
  meta.numbers = {{"best_top1", best_top1},
                  {"validations_since_best", static_cast<double>(validations_since_best)},
                  {"plateau_cuts", static_cast<double>(job_.optimiser.plateau.cuts)},
                  {"plateau_waited", static_cast<double>(job_.optimiser.plateau.waited)},
                  {"validated_step", static_cast<double>(validated_step)},
                  {"steps_per_epoch", static_cast<double>(job_.shape.steps_per_epoch)},
                  {"steps_of_epoch", static_cast<double>(job_.shape.timeline.steps(position.epoch))},
                  {"batch", static_cast<double>(job_.shape.order.batch)}};
  job_.spikes.write(meta.numbers);
  if (job_.config.lookahead.steps > 0)
    meta.numbers[lookahead_number] = static_cast<double>(job_.config.lookahead.steps);
  if (position.step_in_epoch > 0) meta.numbers.merge(numbers_of(epoch));
  return meta;
}

std::vector<float> Checkpointing::spare_memory() {
  if (spare_.empty()) return {};
  std::vector<float> memory = std::move(spare_.back());
  spare_.pop_back();
  return memory;
}

void Checkpointing::download(const ParameterSet& from, Index first, std::vector<float>& to, const char* what) {
  Backend& device = job_.engine->backend();
  to.resize(static_cast<std::size_t>(from.count - first));
  job_.collectives->await(device.download(to.data(), from.block + first, from.count - first, device.record()), what);
}

void Checkpointing::save(const std::string& name, const Position& position, Content content) {
  const ActivityScope phase(Activity::checkpoint);
  const double begun = wall_seconds();
  const auto begin = real_clock().now();
  if (!saver_.idle() && averaged_step_ != position.step) {
    finish();
    constexpr double worth_a_word = 1;  // of a small run's moment nobody needs to know
    if (const double waited = seconds_since(begin);
        !told_slow_ && waited > worth_a_word && job_.communicator.rank() == 0) {
      log::info("steps waited {:.1f} s for the checkpoint of step {}, which was still being written; save less often",
                waited, averaged_step_);
      told_slow_ = true;
    }
  }
  const JobSums epoch = position.step_in_epoch > 0 ? job_.training_log.sums_of_epoch() : JobSums{};
  SaveSpec spec{.name = name, .meta = describe(position, epoch), .begun = begun};
  if (averaged_step_ != position.step) {
    const ParameterSet& averaged = job_.sync->averaged();
    averaged_step_ = position.step;
    if (job_.communicator.rank() == 0) {
      for (std::shared_ptr<HostSet>* copy : {&averaged_, &ema_, &outer_, &bases_})
        if (*copy == nullptr || copy->use_count() > 1) *copy = std::make_shared<HostSet>();
      job_.engine->download(averaged, averaged_->block, *job_.collectives);
      if (job_.average.is_on()) job_.average.download(ema_->block, *job_.collectives);
      if (spec.meta.has_outer) download(job_.sync->outer(), 0, outer_->block, "download of the outer optimizer");
      if (spec.meta.compression.is_on()) download(job_.sync->bases(), 0, bases_->block, "download of bases");
    }
  }
  spec.averaged = averaged_;
  if (job_.average.is_on()) spec.ema = ema_;
  if (spec.meta.has_outer) spec.outer = outer_;
  if (spec.meta.compression.is_on()) spec.bases = bases_;
  spec.with_shards = content == Content::everything && job_.sync->needs_shards();
  if (spec.with_shards && spec.meta.compression.is_on()) {
    const auto residuals = job_.sync->residuals();
    for (int i = 0; i < job_.shape.run.count; ++i) {
      Shard shard{.replica = job_.shape.run.first + i, .set = {}, .residual = {0, spare_memory()}};
      download(residuals[static_cast<std::size_t>(i)], 0, shard.residual.block, "download of a residual");
      spec.shards.push_back(std::move(shard));
    }
  } else if (spec.with_shards) {
    const std::vector<Index> since = job_.sync->samples_since_average();
    const Index first = job_.sync->values_are_current() ? job_.engine->layout().optimiser.begin : 0;
    for (int i = 0; i < job_.shape.run.count; ++i) {
      const int replica = job_.shape.run.first + i;
      Shard shard{replica, since.at(static_cast<std::size_t>(i)), {first, spare_memory()}};
      download(job_.sync->set(replica), first, shard.set.block, "download of a replica");
      spec.shards.push_back(std::move(shard));
    }
  }
  saver_.begin(std::move(spec));
  saved_at_ = real_clock().now();
  stall_seconds_ = seconds_since(begin);
}

void Checkpointing::advance(Index finished_parts) {
  if (saver_.idle()) return;
  saver_.advance(finished_parts);
  take_results();
}

Exit Checkpointing::finish() {
  saver_.finish();
  take_results();
  return last_code_;
}

void Checkpointing::take_results() {
  while (auto result = saver_.take_result()) {
    for (Shard& shard : result->spec.shards)
      spare_.push_back(std::move(shard.residual.block.empty() ? shard.set.block : shard.residual.block));
    last_code_ = result->code;
    failures_ = result->code == Exit::ok ? 0 : failures_ + 1;
    if (result->code == Exit::ok && job_.communicator.rank() == 0) note(*result);
  }
}

void Checkpointing::note(const SaveResult& result) {
  const bool first = cost_seconds_ == 0;
  cost_seconds_ = result.seconds;
  expect_step(step_seconds_);
  const Index step = result.spec.meta.position.step;
  if (first) {
    log::info("checkpoint of step {}: {:.2f} s until it was verified and in place, steps stood still for {:.3f} s",
              step, result.seconds, stall_seconds_);
    if (job_.config.checkpoint.save_auto) {
      log::info("a checkpoint every {:.0f} s: sqrt(2 C M), C = {:.2f} s as measured, M = {} h (--mtbf)",
                interval_seconds(), cost_seconds_, job_.config.checkpoint.mean_failure_hours);
    }
  }
  if (job_.state_file == nullptr || result.spec.name == "best") return;
  job_.state_file->note([&](RunState& state) {
    state.checkpoint =
        path_from(job_.config.output.folder, fmt::format("{}/{}.h5", job_.config.checkpoint.folder, result.spec.name));
    state.checkpoint_step = step;
    state.checkpoint_time = result.spec.begun + result.seconds;
    state.checkpoint_seconds = result.seconds;
    state.checkpoint_stall = stall_seconds_;
  });
}

void Checkpointing::expect_step(double seconds) {
  step_seconds_ = seconds;
  // A save that is under way, then the last one; the running step, and the one in which the stop is agreed on.
  if (cost_seconds_ > 0) job_.limit.reserve(2 * cost_seconds_ + 2 * step_seconds_);
  tell_hasty_launcher();
}

void Checkpointing::tell_hasty_launcher() {
  if (told_haste_ || job_.trial != nullptr || !job_.config.checkpoint.save || job_.communicator.rank() != 0) return;
  const std::string text = hasty_launcher(launcher_at_start(), cost_seconds_ + 2 * step_seconds_);
  if (text.empty()) return;
  log::info("{}", text);
  told_haste_ = true;
}

Exit Checkpointing::trouble() const {
  return failures_ > failures_tolerated || last_code_ == Exit::superseded ? last_code_ : Exit::ok;
}

}  // namespace convoy
