// SPDX-License-Identifier: Apache-2.0
// write_events FOLDER STEP [RESUME]: logs what a run of STEP steps logs, every 10 steps, epochs of 20; with RESUME it
// goes on after that step.
#include <cstdlib>
#include <string>

#include "metrics/metrics.hpp"

int main(int argc, char** argv) {
  using namespace convoy;
  if (argc < 3) return 2;
  const Index last = std::atoll(argv[2]), resume = argc > 3 ? std::atoll(argv[3]) : 0;
  Metrics metrics({.folder = argv[1],
                   .append = resume > 0,
                   .resume_step = resume,
                   .epochs = 2,
                   .configuration = "lr = 0.5\n# name = \xff\n",
                   .hyperparameters = {{"lr", "0.5"}, {"model", "resnet8"}, {"flip", "true"}, {"seed", "1e400"}}});
  for (Index step = resume + 10; step <= last; step += 10) {
    const auto x = static_cast<double>(step);
    const Index epoch = 1 + (step - 1) / 20;
    metrics.train({.epoch = epoch,
                   .step = step,
                   .images = 1000,
                   .counters = {{100 - x + static_cast<double>(resume) / 1000, x}},
                   .rate = 0.5,
                   .seconds = 2,
                   .data_seconds = 0.25,
                   .compute_seconds = 1,
                   .comm_seconds = 0.5});
    const float weights[] = {-2, 0, 1, static_cast<float>(x)};
    metrics.tensors("parameters", step, {summarise("fc.weight", weights, 4)});
    if (step % 20 != 0) continue;
    metrics.epoch({.epoch = epoch, .images = 2000, .counters = {{50, 30}}, .seconds = 4, .rate = 0.5});
    metrics.validation({.epoch = epoch, .step = step, .images = 200, .counters = {{1.5, x / 2 + 50, 90}}});
  }
  metrics.event("end", {{"result", "finished"}}, {{"exit", last == 50 ? 75 : 0}});
  return 0;
}
