// SPDX-License-Identifier: Apache-2.0
#include "infer/evaluate.hpp"

#include "cli/launch.hpp"

namespace convoy {

Exit evaluate_command(Session& session, const Words& words) {
  auto config = agree_on_config<EvaluateConfig>(session, words, parse_evaluate);
  if (!config) return Exit::usage;
  config->command_line = quoted("evaluate", words);
  Communicator communicator(session, config->deadline);
  supervise(communicator, config->deadline);
  return evaluate(communicator, *config);
}

}  // namespace convoy
