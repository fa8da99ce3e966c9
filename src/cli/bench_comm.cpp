// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "backend/factory.hpp"
#include "cli/bench.hpp"
#include "core/log.hpp"

namespace convoy {
namespace {

std::vector<Index> sizes_in_floats(double megabytes) {
  if (megabytes > 0) return {std::max<Index>(1, std::llround(megabytes * 1e6 / 4))};
  std::vector<Index> sizes;
  for (Index floats = 1024; floats <= Index{1} << 24; floats *= 4) sizes.push_back(floats);
  return sizes;
}

/// Sums rank + 1 over the ranks: exact in fp32, so a wrong sum is an error and not a rounding.
class SumBench {
 public:
  SumBench(Communicator& communicator, Backend& backend, bool reproducible, Index floats)
      : communicator_(communicator), backend_(backend) {
    collectives_ = make_mpi_collectives(
        communicator, backend, {.replicas = communicator.size(), .reproducible = reproducible, .max_count = floats});
    mine_ = backend.allocate(floats);
    sum_ = backend.allocate(floats);
    backend.fill(mine_, floats, static_cast<float>(communicator.rank() + 1));
  }

  /// Collective.
  void run(Index floats) {
    const Part part{communicator_.rank(), 1, mine_};
    const Ticket ticket = collectives_->submit({.out = sum_,
                                                .parts = std::span(&part, 1),
                                                .count = floats,
                                                .after = backend_.record(),
                                                .what = "bench all-reduce"});
    collectives_->finish(ticket);
    collectives_->await(backend_.record(), "bench all-reduce");
  }

  void check(Index floats) {
    std::vector<float> host(static_cast<std::size_t>(floats));
    collectives_->await(backend_.download(host.data(), sum_, floats, backend_.record()), "download of a sum");
    const auto ranks = static_cast<float>(communicator_.size());
    const float wanted = ranks * (ranks + 1) / 2;
    for (const float value : host) {
      if (value != wanted) {
        fail(Exit::communication, "the sum of {} floats over {} ranks is {} instead of {}", floats, ranks, value,
             wanted);
      }
    }
  }

 private:
  Communicator& communicator_;
  Backend& backend_;
  std::unique_ptr<Collectives> collectives_;
  float *mine_ = nullptr, *sum_ = nullptr;
};

}  // namespace

Exit bench_comm(Communicator& communicator, const BenchConfig& config) {
  const auto sizes = sizes_in_floats(config.megabytes);
  std::string chosen;
  std::unique_ptr<Backend> backend;
  const Exit code = communicator.together("making the device", [&] {
    backend = make_backend({.device = config.device.device,
                            .threads = config.device.threads,
                            .node_rank = communicator.node_rank(),
                            .node_size = communicator.node_size()},
                           chosen);
  });
  if (code != Exit::ok) return code;
  SumBench bench(communicator, *backend, config.reproducible, sizes.back());
  const int ranks = communicator.size();
  log::info("all-reduce over {} ranks, {}, {} times each; {}", ranks,
            config.reproducible ? "fixed tree (--reproducible)" : "MPI's own order", config.steps, chosen);
  // Bus bandwidth as NCCL's tests define it: what each link carries of a ring, 2 (R - 1) / R of the message.
  log::info("{:>14} {:>11} {:>11} {:>12} {:>12}", "bytes", "mean ms", "min ms", "algo GB/s", "bus GB/s");
  for (const Index floats : sizes) {
    for (Index i = 0; i < config.warmup; ++i) bench.run(floats);
    Stopwatch watch;
    for (Index i = 0; i < config.steps; ++i) {
      communicator.barrier("start of a message");
      watch.start();
      bench.run(floats);
      watch.stop();
    }
    bench.check(floats);
    double slowest[2] = {watch.mean(), watch.minimum()};
    communicator.maximum(std::span<double>(slowest), "time of the messages");
    const double rate = static_cast<double>(floats) * 4 / slowest[0] / 1e9;
    log::info("{:>14} {:>11.3f} {:>11.3f} {:>12.3f} {:>12.3f}", floats * 4, slowest[0] * 1e3, slowest[1] * 1e3, rate,
              rate * 2 * (ranks - 1) / ranks);
  }
  return Exit::ok;
}

}  // namespace convoy
