// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "run/run_status.hpp"

namespace convoy {

/// Asks squeue or qstat for a job. unknown: the scheduler isn't here, or doesn't answer within seconds.
RunObservations::Job ask_scheduler(const std::string& scheduler, const std::string& job);

/// How often the scheduler's job that this process belongs to was submitted again; 0 outside of one.
Index own_restarts();

/// Does anything answer on that host? A refused connection is an answer.
bool host_answers(const std::string& host);

}  // namespace convoy
