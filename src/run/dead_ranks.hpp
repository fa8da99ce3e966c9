// SPDX-License-Identifier: Apache-2.0
// Which ranks of a run have died or hang, judged from outside by the heartbeats that they left.
#pragma once
#include <string>

namespace convoy {

/// Ranks that have stopped or keep the others waiting; empty: none. If one seems to have stopped, this looks again
/// some seconds later.
std::string silent_ranks(const std::string& run_folder);
/// The same after the end of an attempt: ranks that neither left nor were told to end, so died first or were cut off.
std::string first_dead_ranks(const std::string& run_folder);
/// Hosts of the newest attempt's ranks that do not answer, comma-separated.
std::string lost_hosts(const std::string& run_folder);

}  // namespace convoy
