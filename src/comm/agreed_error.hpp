// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>

#include "comm/communicator.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"

namespace convoy {

/// Thrown on all ranks alike, after the failing ones have reported: everybody leaves with `code`.
struct AgreedError {
  Exit code;
};

/// Collective. A step of the set-up that may fail on some ranks only. Who was asked to stop meanwhile says so here.
inline void run_agreed(Communicator& communicator, const char* what, const std::function<void()>& body) {
  const auto interruptible = [&] {
    body();
    leave_if_stopped(what);
  };
  if (const Exit code = communicator.agreed_exit(what, interruptible); code != Exit::ok) throw AgreedError{code};
}

/// Collective. The same ranks, for work for which some may take much longer than others, such as reading their samples:
/// if each has a watchdog, which sees whether it gets on, the others wait for it twelve times as long as elsewhere.
inline std::unique_ptr<Communicator> patient_ranks(Communicator& communicator, StallLimits limits) {
  constexpr double patience = 12;
  if (limits.watchdog_seconds > 0) limits.abort_seconds *= patience;
  return communicator.first_ranks(communicator.size(), limits);
}

/// Collective. What all ranks decide from the same values: if it throws, it throws on all ranks, and rank 0 speaks. The
/// body may communicate; what goes wrong there is no agreement, and passes on.
inline void run_alike(Communicator& communicator, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.code() == Exit::communication) throw;
    if (communicator.rank() == 0) log::report_error(e.what());
    throw AgreedError{e.code()};
  }
}

}  // namespace convoy
