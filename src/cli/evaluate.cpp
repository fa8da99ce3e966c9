// SPDX-License-Identifier: Apache-2.0
#include "infer/evaluate.hpp"

#include "cli/launch.hpp"

namespace convoy {
namespace {

Exit run_evaluate(Session& session, const Words& words) {
  auto config = agree_on_config<EvaluateConfig>(session, words, parse_evaluate);
  if (!config) return Exit::usage;
  config->command_line = quoted("evaluate", words);
  Communicator communicator(session, config->deadline);
  supervise(communicator, config->deadline);
  return evaluate(communicator, *config);
}

}  // namespace

Command evaluate_command() {
  return {
      .name = "evaluate",
      .overview = {"evaluate PATH --data DIR", "accuracy of a checkpoint"},
      .usage = "mpirun -np N convoy evaluate PATH --data DIR [options]",
      .text =
          "Evaluates a checkpoint exactly: the same counts for any number of ranks. PATH is a checkpoint file, its\n"
          "folder or a run directory (its best checkpoint).",
      .heeds_signals = true,
      .see_options = see_options<EvaluateConfig>,
      .on_ranks = run_evaluate};
}

}  // namespace convoy
