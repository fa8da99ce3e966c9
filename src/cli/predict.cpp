// SPDX-License-Identifier: Apache-2.0
#include "infer/predict.hpp"

#include "cli/launch.hpp"

namespace convoy {
namespace {

Exit run_predict(Session& session, const Words& words) {
  const auto config = agree_on_config<PredictConfig>(session, words, parse_predict);
  if (!config) return Exit::usage;
  Communicator communicator(session, config->deadline);
  supervise(communicator, config->deadline);
  return predict(communicator, *config);
}

}  // namespace

Command predict_command() {
  return {
      .name = "predict",
      .overview = {"predict PATH IMAGE ...", "classes of images"},
      .usage = "mpirun -np N convoy predict CHECKPOINT IMAGE ... [options]",
      .text =
          "Lists the most likely classes of images with their probabilities, the same for any number of ranks. IMAGE is an\n"
          "image file, a folder of image files, or (alone) a folder that convoy-preprocess wrote or one of its partitions.\n"
          "Files that are not images are named and counted. If no file is an image, the exit code is 3.",
      .see_options = see_options<PredictConfig>,
      .on_ranks = run_predict};
}

}  // namespace convoy
