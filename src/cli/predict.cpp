// SPDX-License-Identifier: Apache-2.0
#include "infer/predict.hpp"

#include "cli/launch.hpp"

namespace convoy {

Exit predict_command(Session& session, const Words& words) {
  const auto config = agree_on_config<PredictConfig>(session, words, parse_predict);
  if (!config) return Exit::usage;
  Communicator communicator(session, config->deadline);
  supervise(communicator, config->deadline);
  return predict(communicator, *config);
}

}  // namespace convoy
