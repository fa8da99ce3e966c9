// SPDX-License-Identifier: Apache-2.0
#include "comm/time_limit.hpp"

#include <algorithm>

#include "core/log.hpp"
#include "core/stop.hpp"

namespace convoy {

void KeptLimit::reserve(double seconds) const {
  if (end_time > 0) set_stop_time(end_time - margin_seconds - seconds);
}

KeptLimit keep_time_limit(Communicator& communicator, const TimeLimit& limit) {
  KeptLimit kept;
  if (communicator.rank() == 0) {
    const EndOfJob end = end_of_job(limit);
    if (end.time > 0) {
      const double left = std::max(0.0, end.time - wall_seconds());
      kept = {.end_time = end.time, .margin_seconds = std::min(limit.margin_seconds, left / 4)};
      log::info("time limit {} ({}): stops {:.0f} s earlier, and the time of a checkpoint", local_time_text(end.time),
                end.source, kept.margin_seconds);
    }
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&kept, 1)), 0, "time limit");
  kept.reserve(0);
  return kept;
}

}  // namespace convoy
