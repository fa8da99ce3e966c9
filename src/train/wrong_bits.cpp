// SPDX-License-Identifier: Apache-2.0
#include "train/wrong_bits.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "comm/agreed_error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "run/excluded_hosts.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

const std::string& host_of(const TrainingJob& job, int rank) {
  return job.communicator.hosts()[static_cast<std::size_t>(rank)];
}

const std::string& device_of(const TrainingJob& job, int rank) {
  return job.placement.ranks[static_cast<std::size_t>(rank)].device;
}

/// `rank 3 on n1 (cpu ...)` for each; of many, those of a host together.
std::string name_ranks(const TrainingJob& job, const std::vector<int>& ranks) {
  constexpr std::size_t named_alone = 4;
  std::vector<std::string> names;
  if (ranks.size() <= named_alone) {
    for (const int rank : ranks)
      names.push_back(fmt::format("rank {} on {} ({})", rank, host_of(job, rank), device_of(job, rank)));
  } else {
    std::map<std::string, std::vector<int>> by_host;
    for (const int rank : ranks) by_host[host_of(job, rank)].push_back(rank);
    for (const auto& [host, own] : by_host)
      names.push_back(fmt::format("{} {} on {} ({})", own.size() == 1 ? "rank" : "ranks", fmt::join(own, ", "), host,
                                  device_of(job, own.front())));
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

/// What a user can do if nothing shows which rank is wrong.
std::string how_to_tell(const TrainingJob& job, const std::vector<int>& ranks) {
  std::set<std::string> hosts;
  for (const int rank : ranks) hosts.insert(host_of(job, rank));
  const bool one = hosts.size() == 1;
  return fmt::format(
      "; one of them is wrong, and nothing shows which{}: test {} with 'convoy preflight --stress SECONDS', or run {}",
      one ? "" : " (the ranks of a host have one vote)",
      one                 ? "this host"
      : hosts.size() == 2 ? "both hosts"
                          : "these hosts",
      one ? "with three ranks or more" : "on three hosts or more");
}

/// What the message says about the checkpoints that may hold wrong weights.
std::string leave_checkpoints(TrainingJob& job, Index passed_step) {
  if (!job.config.checkpoint.save) return {};
  const Index passed = std::max<Index>(passed_step, 0);
  try {
    const auto aside =
        job.checkpointing.put_newer_aside({job.attempt.record.number, passed}, Checkpointing::Best::moves);
    if (!aside)
      return "; no checkpoint is older than the last check that passed, so the run goes on from one that may be wrong: "
             "save more often (--save-every-steps), or start anew";
    return aside->empty() ? std::string() : fmt::format("; the checkpoints after step {} are in '{}'", passed, *aside);
  } catch (const Error& error) {
    return fmt::format("; the checkpoints after step {} stay where they are ({})", passed, error.what());
  }
}

}  // namespace

void leave_wrong(TrainingJob& job, WrongBits found) {
  Verdict& verdict = found.verdict;
  std::set<std::string> devices;
  for (const RankPlacement& rank : job.placement.ranks) devices.insert(rank.device);
  if (devices.size() > 1) verdict.certain = false;
  job.checkpointing.finish();
  job.sync->averaged_weights();  // no average may be under way when the job's memory is freed
  if (job.shape.rank == 0) {
    const std::string& folder = job.config.output.folder;
    std::string text =
        fmt::format("{}: {} (step {}{})", name_ranks(job, verdict.wrong), verdict.reason, found.step, found.checked_by);
    if (verdict.certain) {
      exclude_hosts(folder, job.attempt.record.number, job.attempt.hosts, verdict.wrong,
                    fmt::format("arithmetic, step {}", found.step));
      text += fmt::format("; leave {} out, as the job scripts do ('{}')",
                          verdict.wrong.size() > 1 ? "their hosts" : "this host", excluded_hosts_path(folder));
    } else if (devices.size() > 1) {
      text += fmt::format("; '{}' and '{}' may round differently: start the job on nodes of one kind", *devices.begin(),
                          *devices.rbegin());
    } else {
      text += how_to_tell(job, verdict.wrong);
    }
    log::report_error(text + leave_checkpoints(job, found.passed_step));
  }
  throw AgreedError{Exit::arithmetic};
}

}  // namespace convoy
