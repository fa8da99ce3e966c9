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

/// Collective. Runs a step of the set-up that may fail on some ranks only. If it fails on any rank, or any rank was
/// asked to stop meanwhile, all throw AgreedError.
inline void run_agreed(Communicator& communicator, const char* what, const std::function<void()>& body) {
  const auto interruptible = [&] {
    body();
    leave_if_stopped(what);
  };
  if (const Exit code = communicator.agreed_exit(what, interruptible); code != Exit::ok) throw AgreedError{code};
}

/// Collective. Returns a communicator of the same ranks for work in which some take much longer than others, such as
/// reading samples. If each rank has a watchdog, which sees whether it makes progress, the ranks wait twelve times as
/// long for each other as elsewhere.
inline std::unique_ptr<Communicator> patient_ranks(Communicator& communicator, StallLimits limits) {
  constexpr double patience = 12;
  if (limits.watchdog_seconds > 0) limits.abort_seconds *= patience;
  return communicator.first_ranks(communicator.size(), limits);
}

/// Collective. Runs what all ranks decide from equal values. If the body throws, it throws on all ranks: rank 0 reports
/// the error, and all throw AgreedError. The body may communicate. An error of communication comes to ranks one by one,
/// so it is not agreed on and leaves as it is.
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
