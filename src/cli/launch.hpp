// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "config/parse.hpp"
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

template <class Config>
using Parse = Config (*)(const Words&, const ReadText&);

/// Collective. The same configuration on all ranks: rank 0 reads the configuration file, so that all ranks see one text
/// or one error. Nothing: rank 0 has said what is wrong with the words, and all ranks leave with Exit::usage.
template <class Config>
std::optional<Config> agree_on_config(Session& session, const Words& words, Parse<Config> parse);

/// Collective. The same for training, which also reads the configuration of the run that it continues.
std::optional<TrainConfig> agree_on_training(Session& session, const Words& words);

/// The call as it can be typed again.
std::string quoted(const std::string& command, const Words& words);

}  // namespace convoy
