// SPDX-License-Identifier: Apache-2.0
#include "train/stop.hpp"

#include <csignal>

namespace convoy {
namespace {

volatile std::sig_atomic_t received = 0;

void remember(int signal) {
  // mpirun and Slurm send the same signal twice to some ranks within a moment: only another kind of request ends at
  // once.
  if (received != 0 && received != signal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  received = signal;
}

}  // namespace

void watch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int stop_signal() { return received; }

}  // namespace convoy
