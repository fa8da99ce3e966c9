// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/status.hpp"
#include "metrics/console.hpp"

namespace convoy {
namespace {

std::string local_time(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  localtime_r(&time, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::string ago(double then, double now) { return duration_text(std::max(0.0, now - then)) + " ago"; }

std::string where(const RunState& state) {
  std::string text = fmt::format("attempt {}", state.attempt);
  if (!state.job.empty()) text += fmt::format(", {} job {}", state.scheduler, state.job);
  return text + fmt::format(", {} ranks, rank 0 on {}", state.ranks, state.host);
}

std::string life_text(const RunReport& report) {
  const RunState& state = report.state;
  const RunObservations& signs = report.signs;
  switch (status_of(state, signs)) {
    case RunStatus::running:
      return fmt::format("running{}, last sign of life {}",
                         state.stop.empty() ? "" : fmt::format(" and asked to stop ({})", state.stop),
                         ago(state.updated, signs.now));
    case RunStatus::hanging:
      return fmt::format("hanging: rank 0 last made progress {}", ago(state.progressed, signs.now));
    case RunStatus::stopped:
      return fmt::format("stopped on request ({}); submit it again to go on", state.stop);
    case RunStatus::finished:
      if (state.step >= state.steps || state.stop.empty()) return "finished";
      return fmt::format("stopped by {} before the end of the run; --resume auto goes on", state.stop);
    case RunStatus::failed:
      return fmt::format("failed with code {}, first on rank {}: {}", static_cast<int>(state.exit), state.rank,
                         state.message);
    case RunStatus::lost:
      break;
  }
  const std::string after =
      signs.job == RunObservations::Job::waits ? "its job waits in the queue to go on" : "submit it again to go on";
  return fmt::format("ended without a word, last sign of life {}; {}", ago(state.updated, signs.now), after);
}

std::string limit_text(const RunState& state, double now) {
  const double left = state.end_time - now, whole = state.end_time - state.started;
  std::string text = fmt::format("{} (in {})", local_time(state.end_time), duration_text(std::max(0.0, left)));
  if (state.images_per_second <= 0 || whole <= 0) return text;
  const double missing = state.eta_seconds - left;
  if (missing <= 0) return text + ", enough to finish";
  return text + fmt::format(", too short: about {} more jobs of this length", std::ceil(missing / whole));
}

}  // namespace

std::string status_text(const RunReport& report) {
  const RunState& state = report.state;
  const double now = report.signs.now;
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<11} {}\n", name, value);
  };
  line("run", report.folder);
  line("state", life_text(report));
  line("attempt", where(state));
  const double share = state.steps > 0 ? 100.0 * static_cast<double>(state.step) / static_cast<double>(state.steps) : 0;
  line("progress", fmt::format("{:.1f} %: epoch {} of {}, step {} of {}, phase {}", share, state.epoch, state.epochs,
                               state.step, state.steps, name_of(state.phase)));
  if (state.images_per_second > 0 && state.result == Result::finished && state.stop.empty()) {
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
  if (!report.signs.silent.empty()) line("ranks", report.signs.silent);
  if (!report.signs.lost_hosts.empty()) line("hosts", "no answer from " + report.signs.lost_hosts);
  if (report.signs.lost_attempts > 1) {
    line("warning", fmt::format("{} attempts since the newest checkpoint", report.signs.lost_attempts));
  }
  return text;
}

std::string status_json(const RunReport& report) {
  auto json = nlohmann::ordered_json::parse(to_text(report.state));
  json["life"] = name_of(status_of(report.state, report.signs));
  json["silent"] = report.signs.silent;
  json["lost_hosts"] = report.signs.lost_hosts;
  json["lost_attempts"] = report.signs.lost_attempts;
  json["now"] = report.signs.now;
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace convoy
