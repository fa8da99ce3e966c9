// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>

#include <exception>

#include "cli/launch.hpp"
#include "core/standard_output.hpp"
#include "core/stop.hpp"

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "convoy");  // a bundle starts it by a loader, whose name the process had
  convoy::guard_process();
  const convoy::Words words(argv + 1, argv + argc);
  if (const auto code = convoy::answer_alone(words)) return static_cast<int>(*code);
  if (convoy::find_command(words.front())->heeds_signals) convoy::watch_stop_signals();
  try {
    convoy::Session session(argc, argv);
    // A try of its own: while an exception unwinds, MPI_Finalize would wait for ranks that wait for this one.
    try {
      return static_cast<int>(convoy::run_on_ranks(session, words));
    } catch (const std::exception& failure) {
      convoy::end_job(failure);
    }
  } catch (const std::exception& failure) {  // there is no job yet that could be ended
    return static_cast<int>(convoy::refuse_start(failure));
  }
}
