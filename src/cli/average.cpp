// SPDX-License-Identifier: Apache-2.0
#include "infer/average.hpp"

#include "cli/command.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"

namespace convoy {

namespace {

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
