// SPDX-License-Identifier: Apache-2.0
#include "config/hash.hpp"

#include <fmt/format.h>

#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/hash.hpp"

namespace convoy {

namespace {

bool is_of_another_rule(const OptimiserConfig& optimiser, const std::string& option) {
  return optimiser.settings.count(option) > 0 && info_of(optimiser.rule).find(option) == nullptr;
}

}  // namespace

std::string configuration_hash(const TrainConfig& config) {
  TrainConfig copy = config;
  std::string text;
  for (const auto& group : options_of(copy)) {
    for (const auto& option : group.options) {
      // Beside --batch-size it only repeats what that and the replicas say.
      if (option.name == "global-batch" && config.batch_given) continue;
      // Runs without a moving average keep the hash that they had before there was one.
      if (option.name.starts_with("ema-") && config.ema.decay == 0) continue;
      // Runs keep the hash that they had when momentum was the only option of a rule.
      if (is_of_another_rule(config.optimiser, option.name) && option.name != "momentum") continue;
      if (option.bits == Bits::decides_where_set && option.print().empty()) continue;
      if (option.bits != Bits::irrelevant) text += fmt::format("{}={}\n", option.name, option.print());
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

std::string differing_options(const std::string& then, const TrainConfig& now) {
  TrainConfig before, after = now;
  try {
    before = parse_ini(then);
  } catch (const Error&) {
    return {};  // of another version
  }
  std::string text;
  const auto said = [](const std::string& value) { return value.empty() ? std::string("not set") : value; };
  const auto groups = options_of(before);
  for (std::size_t g = 0; const auto& group : options_of(after)) {
    for (std::size_t i = 0; const auto& option : group.options) {
      const std::string old_value = groups[g].options[i].print(), new_value = option.print();
      if (option.bits != Bits::irrelevant && old_value != new_value)
        text += fmt::format("{}{} {} then, {} now", text.empty() ? "" : "; ", option.name, said(old_value),
                            said(new_value));
      ++i;
    }
    ++g;
  }
  return text.empty() ? "[phase.N]" : text;
}

}  // namespace convoy
