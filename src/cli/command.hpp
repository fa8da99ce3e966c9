// SPDX-License-Identifier: Apache-2.0
// One file a command. A command that runs on ranks gets the session; `words` is what follows its name.
#pragma once
#include <string>
#include <vector>

#include "comm/session.hpp"
#include "core/errors.hpp"

namespace convoy {

using Words = std::vector<std::string>;

/// Collective.
Exit train_command(Session& session, const Words& words);
/// Collective.
Exit evaluate_command(Session& session, const Words& words);
/// Collective.
Exit predict_command(Session& session, const Words& words);
/// Collective.
Exit bench_command(Session& session, const Words& words);
/// Collective.
Exit preflight_command(Session& session, const Words& words);

/// Alone, without MPI.
Exit inspect_command(const Words& words);
/// Alone, without MPI.
Exit status_command(const Words& words);
/// Alone, without MPI.
Exit summary_command(const Words& words);

}  // namespace convoy
