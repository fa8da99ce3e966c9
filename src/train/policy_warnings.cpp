// SPDX-License-Identifier: Apache-2.0
#include "train/policy_warnings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/text.hpp"
#include "network/patterns.hpp"
#include "sync/traffic.hpp"
#include "train/setup.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

/// Empty: averages come as they are asked for.
std::string warn_of_period(const JobShape& job) {
  const SyncSpec& sync = job.sync;
  const Index steps = sync.local_steps, start = sync.local_start;
  if (steps == 1 || (job.replicas == 1 && !sync.outer.is_on())) return {};
  if (start >= job.total_steps)
    return fmt::format(
        "--local-sgd-start {} is not reached: the run has {}, and the replicas average after every one of them; lower it, "
        "or drop --local-steps {}",
        start, counted(job.total_steps, "step"), steps);
  // A late average needs a period more.
  const Index first = (start / steps + 1) * steps + (sync.overlap ? steps : 0);
  if (first <= job.total_steps) return {};
  return fmt::format(
      "--local-steps {} is too long: the run has {}, and no average reaches the replicas {}; lower it", steps,
      counted(job.total_steps, "step"),
      start > 0 ? fmt::format("after step {} (--local-sgd-start)", start) : std::string("before its end"));
}

/// The hosts of a group, as text, if they are several; else empty.
std::string hosts_of_group(const JobShape& job, int first, const std::vector<std::string>& host_of_rank) {
  std::set<std::string> hosts;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const ReplicaRun run = deal_replicas(job.replicas, job.ranks, rank);
    if (run.count > 0 && run.first < first + job.sync.group.replicas && run.first + run.count > first)
      hosts.insert(host_of_rank[static_cast<std::size_t>(rank)]);
  }
  return hosts.size() < 2 ? std::string() : fmt::format("{}", fmt::join(hosts, ", "));
}

std::string warn_of_groups(const JobShape& job, const std::vector<std::string>& host_of_rank) {
  const GroupSpec& group = job.sync.group;
  if (!group.is_on()) return {};
  if (group.replicas == 1)
    return fmt::format(
        "--node-steps {} has no effect: each group has one replica, which is its own average; start more ranks on each "
        "host, or drop it",
        group.steps);
  if (group.replicas == job.replicas)
    return fmt::format(
        "--local-steps {} has no effect: all replicas are one group, which averages every {} (--node-steps)",
        job.sync.local_steps, counted(group.steps, "step"));
  for (int first = 0; first < job.replicas; first += group.replicas)
    if (const std::string hosts = hosts_of_group(job, first, host_of_rank); !hosts.empty())
      return fmt::format(
          "replicas {} to {} are a group (--node-replicas {}) and lie on {}, so the averages every {} (--node-steps) "
          "cross the network; give a --node-replicas with which each group lies on one host",
          first, first + group.replicas - 1, group.replicas, hosts, counted(group.steps, "step"));
  return {};
}

/// Rows that train and that the pattern of an option matches.
std::vector<const Parameter*> trained_rows(const Plan& plan, const char* option, const std::string& pattern) {
  const std::set<std::string> meant = find_parameters(plan.graph, option, pattern);
  std::vector<const Parameter*> rows;
  for (const Parameter& row : plan.table.rows)
    if (row.trainable && meant.count(row.name) > 0) rows.push_back(&row);
  return rows;
}

std::string warn_of_frozen(const char* option, const std::string& pattern) {
  return fmt::format(
      "{} '{}' has no effect: none of the parameters that it matches trains (--freeze, or the network itself, keeps them "
      "as they are); drop it",
      option, pattern);
}

void add_idle_multipliers(const TrainConfig& config, const Plan& plan, std::vector<std::string>& texts) {
  for (const RateMultiplierConfig& multiplier : config.rate_multipliers)
    if (trained_rows(plan, "--lr-mult", multiplier.pattern).empty())
      texts.push_back(warn_of_frozen("--lr-mult", multiplier.pattern));
  for (const DecayMultiplierConfig& multiplier : config.decay_multipliers) {
    const auto rows = trained_rows(plan, "--decay-mult", multiplier.pattern);
    if (rows.empty()) {
      texts.push_back(warn_of_frozen("--decay-mult", multiplier.pattern));
    } else if (multiplier.factor > 0 &&
               std::none_of(rows.begin(), rows.end(), [](const Parameter* row) { return row->decay > 0; })) {
      texts.push_back(
          fmt::format("--decay-mult '{}' has no effect: the parameters that it matches have a weight decay of 0 "
                      "(--weight-decay, --norm-weight-decay or --bias-weight-decay; or a later pattern); give them "
                      "one, or drop it",
                      multiplier.pattern));
    }
  }
}

}  // namespace

std::vector<std::string> policy_warnings(const JobShape& job, const std::vector<std::string>& hosts) {
  if (local_steps_of_checkpoint(job.sync) == 0) return {};  // sums of gradients
  std::vector<std::string> texts;
  for (std::string text : {warn_of_period(job), warn_of_groups(job, hosts)})
    if (!text.empty()) texts.push_back(std::move(text));
  return texts;
}

std::string wire_warning(const SyncSpec& sync, const Plan& plan, const SetLayout& layout) {
  if (!sync.compression.is_on()) return {};
  SyncSpec plain = sync;
  plain.compression = {};
  const Index compressed = bytes_sent(traffic_of(sync, plan, layout), sync.ranks),
              whole = bytes_sent(traffic_of(plain, plan, layout), sync.ranks);
  if (compressed <= whole || sync.ranks < 2) return {};
  return fmt::format(
      "--wire {} sends more than fp32 would: {:.3g} MB per step instead of {:.3g}: each of {} sends a message to all "
      "ranks; take --wire bf16, fewer replicas, or a lower --wire-fraction (topk) or --wire-rank (powersgd)",
      name_of(sync.compression.kind), static_cast<double>(compressed) / 1e6, static_cast<double>(whole) / 1e6,
      counted(sync.replicas, "replica"));
}

std::vector<std::string> option_warnings(const TrainConfig& config, double peak_rate, const Plan& plan) {
  std::vector<std::string> texts;
  const ScheduleSpec& schedule = config.optimiser.schedule;
  const bool rises = schedule.decay == Decay::onecycle || schedule.decay == Decay::phases;
  if (!rises && schedule.decay != Decay::constant && schedule.min_rate > peak_rate)
    texts.push_back(fmt::format(
        "--min-lr {} is above the peak learning rate of {:g} (--lr after --lr-scaling), so the learning rate "
        "rises to it; lower --min-lr, or raise --lr",
        schedule.min_rate, peak_rate));
  if (!rises && schedule.warmup_epochs > 0 && schedule.warmup_rate > peak_rate)
    texts.push_back(
        fmt::format("--warmup-lr {} is above the peak learning rate of {:g} (--lr after --lr-scaling), so the learning "
                    "rate falls in the warm-up; lower --warmup-lr, or raise --lr",
                    schedule.warmup_rate, peak_rate));
  const bool in_steps = schedule.decay == Decay::step || schedule.decay == Decay::multistep;
  if (in_steps && schedule.step_epochs.front() <= schedule.warmup_epochs)
    texts.push_back(fmt::format(
        "--lr-step-epochs {:g} lies within the warm-up (--warmup-epochs {:g}), so the learning rate is cut before it reaches "
        "its peak: Convoy counts these epochs from the start of the run, torchvision's scripts count them from the end of the "
        "warm-up; {}, or shorten the warm-up",
        schedule.step_epochs.front(), schedule.warmup_epochs,
        schedule.decay == Decay::step ? "give more epochs" : "add the warm-up to each of them"));
  if (config.val_interval == 0 && config.patience > 0)
    texts.push_back(fmt::format(
        "--patience {} counts validations, and --val-interval 0 leaves only the one at the end; drop one of them",
        config.patience));
  if (config.val_interval == 0 && schedule.decay == Decay::plateau)
    texts.emplace_back(
        "--lr-schedule plateau follows the validations, and --val-interval 0 leaves only the one at the end; drop one of "
        "them");
  if (config.class_weights.automatic && config.data.balance == Balance::classes)
    texts.emplace_back(
        "--class-weights auto and --balance classes together count rare classes twice (each alone evens them out); drop "
        "one of them");
  add_idle_multipliers(config, plan, texts);
  return texts;
}

std::vector<std::string> likely_mistakes(const TrainingJob& job) {
  std::vector<std::string> texts = job_warnings(job.phases);
  for (std::string& text : policy_warnings(job.shape, job.communicator.hosts())) texts.push_back(std::move(text));
  for (std::string& text : option_warnings(job.config, job.shape.peak_rate, job.engine->plan()))
    texts.push_back(std::move(text));
  if (std::string text = wire_warning(job.shape.sync, job.engine->plan(), job.engine->layout()); !text.empty())
    texts.push_back(std::move(text));
  return texts;
}

}  // namespace convoy
