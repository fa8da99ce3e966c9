// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/bench.hpp"
#include "cli/compute_bench.hpp"
#include "core/log.hpp"

namespace convoy {

Exit bench_compute(Communicator& communicator, const BenchConfig& config) {
  ComputeBench bench(communicator, config);
  Engine& engine = bench.engine();
  const GraphSpec& model = bench.model();
  const BenchTimes times = bench.run(communicator, config.warmup, config.steps);
  const auto rates = of_all_ranks(communicator, static_cast<double>(config.batch) / times.mean, "images a second");
  double slowest[3] = {times.mean, times.fastest, times.wait};
  communicator.maximum(std::span<double>(slowest), "time of the steps");
  double cpu = times.cpu;
  communicator.sum(std::span<double>(&cpu, 1), "time of the cores");
  double total = 0;
  for (const double rate : rates) total += rate;
  const Cost cost = cost_of(engine.plan().graph, model.image_size, model.image_size);
  log::info("{}, {}x{}x{}, {} ranks x batch {}, {}; {}", engine.plan().graph.model, model.channels, model.image_size,
            model.image_size, communicator.size(), config.batch,
            config.gradients ? "gradients summed over the ranks" : "ranks alone", engine.chosen_device());
  if (!engine.backend().host_reads())
    log::info("{}; graph launches: {:.2f} a step; allocations in the timed steps: {}; sums: {}",
              engine.backend().describe(), times.graph_launches, times.allocations, bench.transport());
  log::info("images/s: {:.1f} in all; per rank: {}", total, print_ranks(rates));
  if (engine.backend().host_reads()) {
    log::info("a core: {:.1f} images/s (by {:.2f} s of CPU time)",
              static_cast<double>(config.batch * communicator.size()) / std::max(cpu, 1e-9),
              cpu * static_cast<double>(config.steps));
  }
  log::info("step: mean {:.2f} ms, min {:.2f} ms of {} steps; waiting for sums {:.2f} ms (slowest rank)",
            slowest[0] * 1e3, slowest[1] * 1e3, config.steps, slowest[2] * 1e3);
  log::info("training: {:.1f} GFLOP/s in all ({:.3f} GFLOP an image); loss {:.4f}", total * cost.training_flops / 1e9,
            cost.training_flops / 1e9, bench.loss());
  return Exit::ok;
}

}  // namespace convoy
