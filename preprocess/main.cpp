// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "comm/session.hpp"
#include "comm/time_limit.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/standard_output.hpp"
#include "core/stop.hpp"
#include "preprocess/prepare.hpp"
#include "run/supervisor.hpp"

namespace convoy::preparation {
namespace {

/// Cores that the launcher bound this rank to, or its share of the node's.
int usual_threads(const Communicator& communicator) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  const int own = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : all;
  return std::max(own < all ? own : all / communicator.node_size(), 1);
}

/// Heartbeats name ranks that others wait for. A rank that reads a large archive by itself makes no progress that a
/// watchdog would see.
StallLimits without_watchdog(StallLimits limits) {
  limits.watchdog_seconds = 0;
  return limits;
}

Exit run(Session& session, const Command& command) {
  const Launcher& launcher = launcher_at_start();
  if (const std::string problem = lonely_worlds(launcher, world_size()); !problem.empty()) {
    if (launcher.rank == 0) log::report_error(problem);
    return Exit::usage;
  }
  if (const auto* given = std::get_if<PrepareSpec>(&command)) {
    PrepareSpec spec = *given;
    Communicator communicator(session, spec.deadline);
    log::configure(communicator.rank(), communicator.size(), communicator.host());
    keep_time_limit(communicator, spec.time_limit);
    const Supervisor supervisor(communicator, without_watchdog(spec.deadline));
    progress().enter(Activity::data);
    heed_interrupts(communicator.rank(), "stopping; start it again to continue from here");
    if (spec.threads == 0) spec.threads = usual_threads(communicator);
    return prepare(communicator, spec);
  }
  if (const auto* spec = std::get_if<VerifySpec>(&command)) {
    Communicator communicator(session, spec->deadline);
    log::configure(communicator.rank(), communicator.size(), communicator.host());
    keep_time_limit(communicator, spec->time_limit);
    const Supervisor supervisor(communicator, without_watchdog(spec->deadline));
    progress().enter(Activity::data);
    heed_interrupts(communicator.rank(), "stopping before all has been checked");
    return require_output(verify(communicator, *spec));
  }
  Communicator communicator(session, StallLimits{});
  log::configure(communicator.rank(), communicator.size(), communicator.host());
  const Exit code = communicator.agreed_exit("inspecting", [&] {
    if (communicator.rank() != 0) return;
    if (const auto* spec = std::get_if<InspectSpec>(&command)) inspect(*spec);
  });
  return require_output(code);
}

/// All ranks read the same words: rank 0 speaks, all return.
Exit refuse(Session& session, const Error& error) {
  Communicator communicator(session, StallLimits{});
  log::configure(communicator.rank(), communicator.size(), communicator.host());
  if (communicator.rank() == 0) log::report_error(error.what());
  return error.code();
}

/// Answers a request for help, which needs no ranks. Nothing: the words ask for work, or are wrong; then the ranks
/// answer together.
std::optional<Exit> answer_alone(const std::vector<std::string>& arguments) {
  Command command;
  try {
    command = parse_command_line(arguments);
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto* const help = std::get_if<HelpSpec>(&command);
  if (help == nullptr) return std::nullopt;
  if (launcher_at_start().rank == 0) write_output(help->text);
  return require_output(Exit::ok);
}

Exit parse_and_run(Session& session, const std::vector<std::string>& arguments) {
  Command command;
  try {
    command = parse_command_line(arguments);
  } catch (const Error& error) {
    return refuse(session, error);
  }
  return run(session, command);
}

}  // namespace
}  // namespace convoy::preparation

int main(int argc, char** argv) {
  const auto code_of = [](const std::exception& failure) {
    const auto* error = dynamic_cast<const convoy::Error*>(&failure);
    return error != nullptr ? error->code() : convoy::Exit::internal;
  };
  convoy::guard_process();
  convoy::watch_stop_signals();
  try {
    if (const auto code = convoy::preparation::answer_alone({argv + 1, argv + argc})) return static_cast<int>(*code);
    convoy::Session session(argc, argv);
    // A try of its own: MPI_Finalize must not run while an exception unwinds.
    try {
      return static_cast<int>(convoy::preparation::parse_and_run(session, {argv + 1, argv + argc}));
    } catch (const std::exception& failure) {
      convoy::log::report_error(failure.what());
      convoy::abort_job(code_of(failure));
    }
  } catch (const std::exception& failure) {  // MPI could not start, or help could not be printed
    convoy::log::report_error(failure.what());
    return static_cast<int>(code_of(failure));
  }
}
