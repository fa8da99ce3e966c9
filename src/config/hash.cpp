// SPDX-License-Identifier: Apache-2.0
#include "config/hash.hpp"

#include <fmt/format.h>

#include "config/options.hpp"
#include "core/hash.hpp"

namespace convoy {

std::string configuration_hash(const TrainConfig& config) {
  TrainConfig copy = config;
  std::string text;
  for (const auto& group : options_of(copy)) {
    for (const auto& option : group.options) {
      // Beside --batch-size it only repeats what that and the replicas say.
      if (option.name == "global-batch" && config.batch_given) continue;
      // Runs without a moving average keep the hash that they had before there was one.
      if (option.name.starts_with("ema-") && config.ema.decay == 0) continue;
      if (option.bits == Bits::decides) text += fmt::format("{}={}\n", option.name, option.print());
    }
  }
  for (const PhaseConfig& phase : config.phases) {
    const RatePhase& rate = phase.rate;
    text += fmt::format("phase={}:{} {}:{}\n", rate.begin_epoch, rate.end_epoch, rate.from, rate.to);
    if (!phase.changes_data()) continue;
    // Neither validation nor where the data lie decides bits of training.
    text += fmt::format("size={} batch={} global={} area={}\n", phase.image_size, phase.batch, phase.global_batch,
                        phase.min_area);
  }
  return fmt::format("{:016x}", hash_text(text));
}

}  // namespace convoy
