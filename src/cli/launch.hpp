// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "cli/command.hpp"
#include "run/supervisor.hpp"

namespace convoy {

/// Answers what needs no MPI: --help, --version, `inspect`, and words that name no command. Nothing returned:
/// run_on_ranks is next.
std::optional<Exit> answer_alone(const Words& words);

/// Collective. Runs words[0] on all ranks. Throws where only this rank failed.
Exit run_on_ranks(Session& session, const Words& words);

/// Collective. Makes the supervisor of this process, which ends with run_on_ranks or end_job.
Supervisor& supervise(Communicator& communicator, const StallLimits& limits);

/// Prints why MPI could not be begun.
Exit refuse_start(const std::exception& failure);

/// Prints a failure and ends the whole job with its code.
[[noreturn]] void end_job(const std::exception& failure);

}  // namespace convoy
