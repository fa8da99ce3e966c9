// SPDX-License-Identifier: Apache-2.0
#include "train/train.hpp"

#include "comm/agreed_error.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

/// The text first: the run directory may be what fails, and then what is written there may never end.
void end_failed(Supervisor& supervisor, Exit code, const std::string& message) {
  // Wrong usage is mostly seen by all ranks alike: whoever ends the job chooses who says it.
  if (code != Exit::usage) log::report_error(message);
  supervisor.end_attempt(code, message);
}

}  // namespace

Exit train(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, Trial* trial) {
  heed_interrupts(communicator.rank(), trial == nullptr ? "stopping after this step, with a checkpoint"
                                                        : "stopping after this step; nothing is kept");
  try {
    TrainingJob job(communicator, supervisor, config, trial);
    const Exit code = job.run();
    // All ranks have the same code. An average that is still under way would write to freed memory.
    job.sync->averaged_weights();
    if (code == Exit::ok || code == Exit::stopped) {
      job.collectives->end();
      if (job.group_collectives) job.group_collectives->end();
    }
    supervisor.end_attempt(code, log::last_error());
    return code;
  } catch (const AgreedError& error) {
    if (error.code == Exit::stopped)
      log::info("stopped on request ({}) before the first step; start it again", name_of(stop_reason()));
    supervisor.end_attempt(error.code, log::last_error());
    return error.code;
  } catch (const Error& error) {
    end_failed(supervisor, error.code(), error.what());
    throw;
  } catch (const std::exception& error) {
    end_failed(supervisor, Exit::internal, error.what());
    throw;
  }
}

}  // namespace convoy
