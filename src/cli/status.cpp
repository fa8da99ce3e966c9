// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/command.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/standard_output.hpp"
#include "core/text.hpp"
#include "core/wall_clock.hpp"
#include "metrics/console.hpp"
#include "run/attempt.hpp"
#include "run/excluded_hosts.hpp"
#include "run/observe.hpp"
#include "run/rank_liveness.hpp"
#include "run/scheduler.hpp"

namespace convoy {
namespace {

struct RunReport {
  std::string folder;
  RunState state;
  RunObservations seen;
  std::string refused;          ///< why a later attempt has not begun
  std::string last_heartbeats;  ///< of the ranks of a run that is lost
  std::vector<ExcludedHost> excluded;
};

/// Why the newest attempt ended before it could change the run's state; empty: it did not.
std::string refusal(const std::string& folder, RunState state) {
  const Index newest = newest_attempt(folder).number;
  if (newest <= state.attempt) return {};
  pass_to_attempt(state, folder, newest);
  return state.result == Result::failed ? fmt::format("attempt {} failed before it began: {}", newest, state.message)
                                        : std::string();
}

std::string ago(double then, double now) { return duration_text(std::max(0.0, now - then)) + " ago"; }

std::string where(const RunState& state) {
  std::string text = fmt::format("attempt {}", state.attempt);
  if (!state.job.empty()) text += fmt::format(", {} job {}", state.scheduler, state.job);
  return text + fmt::format(", {}, rank 0 on {}", counted(state.ranks, "rank"), state.host);
}

std::string limit_text(const RunState& state, double now) {
  const double left = state.end_time - now, whole = state.end_time - state.started;
  std::string text = fmt::format("{} (in {})", local_time_text(state.end_time), duration_text(std::max(0.0, left)));
  if (state.images_per_second <= 0 || whole <= 0) return text;
  const double missing = state.eta_seconds - left;
  if (missing <= 0) return text + ", enough to finish";
  return text + fmt::format(", too short: about {} more jobs of this length", std::ceil(missing / whole));
}

/// Lines for people, as of report.seen.now.
std::string status_text(const RunReport& report, const RequeueDecision& decision) {
  const RunState& state = report.state;
  const double now = report.seen.now;
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<11} {}\n", name, value);
  };
  line("run", report.folder);
  line("state", decision.text);
  line("attempt", where(state));
  const double share = state.steps > 0 ? 100.0 * static_cast<double>(state.step) / static_cast<double>(state.steps) : 0;
  line("progress", fmt::format("{:.1f} %: epoch {} of {}, step {} of {}, phase {}", share, state.epoch, state.epochs,
                               state.step, state.steps, name_of(state.stage)));
  if (state.images_per_second > 0 && state.result == Result::finished) {
    line("rate", fmt::format("{:.1f} images/s", state.images_per_second));
  } else if (state.images_per_second > 0) {
    line("rate", fmt::format("{:.1f} images/s; {} to go at this speed", state.images_per_second,
                             duration_text(state.eta_seconds)));
  }
  line("checkpoint", state.checkpoint.empty() ? "none yet"
                                              : fmt::format("{} at step {}, {}, written in {:.1f} s", state.checkpoint,
                                                            state.checkpoint_step, ago(state.checkpoint_time, now),
                                                            state.checkpoint_seconds));
  if (state.end_time > 0 && state.result == Result::running) line("time limit", limit_text(state, now));
  const std::string& ranks = report.last_heartbeats.empty() ? report.seen.silent : report.last_heartbeats;
  if (!ranks.empty()) line("ranks", ranks);
  if (!report.seen.lost_hosts.empty()) line("hosts", "no answer from " + report.seen.lost_hosts);
  if (!report.refused.empty()) line("refused", report.refused);
  if (!report.excluded.empty())
    line("excluded", fmt::format("{}; once a host is repaired, remove its line from '{}'", describe(report.excluded),
                                 excluded_hosts_path(report.folder)));
  if (report.seen.lost_attempts > 1) {
    line("warning", fmt::format("{} attempts since the newest checkpoint", report.seen.lost_attempts));
  }
  return text;
}

/// The state's own fields and `life`, `silent`, `last_heartbeats`, `launcher_code`, `lost_hosts`, `lost_attempts`,
/// `excluded_hosts`, `now`.
std::string status_json(const RunReport& report, const RequeueDecision& decision) {
  Json json = Json::parse(to_text(report.state));
  json["life"] = name_of(decision.status);
  json["silent"] = report.seen.silent;
  json["last_heartbeats"] = report.last_heartbeats;
  json["launcher_code"] = report.seen.launcher_code;
  json["lost_hosts"] = report.seen.lost_hosts;
  json["lost_attempts"] = report.seen.lost_attempts;
  json["excluded_hosts"] = Json::list();
  for (const ExcludedHost& own : report.excluded)
    json["excluded_hosts"].add(Json::object({{"host", own.host}, {"attempt", own.attempt}, {"reason", own.reason}}));
  json["now"] = report.seen.now;
  return json.text(1, Json::Order::as_written) + "\n";
}

/// Answers a job script that may submit itself: `again` on stdout, or nothing; the reasons go to stderr.
Exit answer_job_script(const StatusConfig& config) {
  JobFacts job{.end = config.job_end,
               .now = real_clock().wall_seconds(),
               .told_to_end = config.told_to_end,
               .notice = notice_of(own_job().scheduler),
               .keeps_nothing = config.keeps_nothing,
               .resubmitted = own_restarts(),
               .resubmissions = config.resubmissions};
  RequeueDecision decision{.exit = exit_without_run(config.after, job), .text = {}};
  if (!config.folder.empty()) {
    decision = decide_after_launch(config.folder, config.after, config.attempts_before);
    std::fputs(fmt::format("{}: {}\n", config.folder, decision.text).c_str(), stderr);
  }
  if (decision.exit != static_cast<int>(Exit::stopped)) return static_cast<Exit>(decision.exit);
  job.jobs_in_vain = count_jobs_in_vain(config.partitions, config.partitions_made);
  const SubmissionDecision submission = decide_submission(job);
  std::fputs(fmt::format("[job {}] {}\n", own_job().job, submission.text).c_str(), stderr);
  if (submission.again) std::puts("again");
  return Exit::stopped;
}

Exit run_status(const Words& words) {
  const StatusConfig config = parse_status(words);
  if (config.after >= 0 && config.resubmissions >= 0) return answer_job_script(config);
  if (config.after >= 0) {
    const RequeueDecision decision = decide_after_launch(config.folder, config.after, config.attempts_before);
    // The code is the answer, also where nobody can read the text.
    std::fputs(fmt::format("{}: {}\n", config.folder, decision.text).c_str(), stdout);
    return static_cast<Exit>(decision.exit);
  }
  const auto state = find_run_state(config.folder);
  if (!state) {
    fail(Exit::usage,
         "'{}' has no state.json (no run has begun there, or this is another folder); give a run directory",
         config.folder);
  }
  RunReport report{
      .folder = config.folder, .state = *state, .seen = {}, .refused = {}, .last_heartbeats = {}, .excluded = {}};
  report.excluded = read_excluded_hosts(config.folder);
  report.refused = refusal(config.folder, *state);
  report.seen = observe_closely(config.folder, report.state);
  const RequeueDecision decision = decide(report.state, report.seen);
  if (decision.status == RunStatus::lost) report.last_heartbeats = last_heartbeats(config.folder);
  write_output(config.json ? status_json(report, decision) : status_text(report, decision));
  return static_cast<Exit>(decision.exit);
}

}  // namespace

Command status_command() {
  return {
      .name = "status",
      .overview = {"status RUN_DIR", "state of a run"},
      .usage = "convoy status RUN_DIR [options]",
      .text =
          "Shows how a run is doing, on any machine that sees its run directory: progress, speed, time left, newest\n"
          "checkpoint, and whether the run is alive. It exits with 0 if the run is alive or has finished, with 5 if it hangs,\n"
          "with 75 if it stopped or was killed and continues when submitted again, else with the code of its failure.",
      .see_options = see_options<StatusConfig>,
      .alone = run_status};
}

}  // namespace convoy
