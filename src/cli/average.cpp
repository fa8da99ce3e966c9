// SPDX-License-Identifier: Apache-2.0
#include "infer/average.hpp"

#include "cli/command.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"

namespace convoy {

// Not in the namespace without a name: see_options() finds it where AverageConfig lies.
std::vector<OptionGroup> options_of(AverageConfig& config) {
  OptionGroup group{"Average", {}};
  group.options.push_back(text_option("output", "FILE", config.output, "checkpoint to write").short_form('o'));
  group.options.push_back(overwrite_option(config.overwrite));
  return {std::move(group)};
}

namespace {

AverageConfig parse_average(const Words& words) {
  AverageConfig config;
  config.checkpoints = read_words("average", options_of(config), words);
  if (config.checkpoints.size() < 2 || config.output.empty()) {
    fail(Exit::usage, "{}; use 'convoy average CHECKPOINT CHECKPOINT ... --output FILE.h5'",
         config.output.empty() ? "no --output is given" : "an average needs two checkpoints or more");
  }
  return config;
}

Exit run_average(const Words& words) {
  write_output(average_models(parse_average(words)) + "\n");
  return Exit::ok;
}

}  // namespace

Command average_command() {
  return {
      .name = "average",
      .overview = {"average PATH PATH ... -o FILE", "mean of several checkpoints"},
      .usage = "convoy average CHECKPOINT CHECKPOINT ... --output FILE [options]",
      .text =
          "Writes a checkpoint with the mean weights and running statistics of several checkpoints of one network and data\n"
          "set, for evaluate, predict, export and --weights.",
      .see_options = see_options<AverageConfig>,
      .alone = run_average};
}

}  // namespace convoy
