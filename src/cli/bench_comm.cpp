// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "backend/factory.hpp"
#include "cli/bench.hpp"
#include "core/log.hpp"
#include "core/text.hpp"

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
  SumBench(Communicator& communicator, Backend& backend, const TransportChoice& choice, bool reproducible, Index floats)
      : communicator_(communicator), backend_(backend) {
    collectives_ =
        make_collectives(choice, communicator, backend,
                         {.replicas = communicator.size(), .reproducible = reproducible, .max_count = floats});
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

/// The ways that the user wants to see.
std::vector<TransportWish> wishes_of(const BenchConfig& config) {
  const MpiMemory memory = config.cuda_aware ? MpiMemory::device : MpiMemory::host;
  if (config.backend != "all") return {{config.backend, memory}};
  return {{"mpi", MpiMemory::host}, {"mpi", MpiMemory::device}, {"nccl", MpiMemory::host}};
}

/// Collective.
void measure(Communicator& communicator, SumBench& bench, const std::vector<Index>& sizes, const BenchConfig& config) {
  const int ranks = communicator.size();
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
}

}  // namespace

Exit bench_comm(Communicator& communicator, const BenchConfig& config) {
  const auto sizes = sizes_in_floats(config.megabytes);
  std::string chosen;
  std::unique_ptr<Backend> backend;
  const Exit code = communicator.agreed_exit("making the device", [&] {
    backend = make_backend({.device = config.device.device,
                            .threads = config.device.threads,
                            .node_rank = communicator.node_rank(),
                            .node_size = communicator.node_size()},
                           chosen);
  });
  if (code != Exit::ok) return code;
  const RankDevices devices = find_devices(communicator, *backend);
  const bool host = backend->host_reads();
  log::info("all-reduce over {}, {}, {} times each; {}", counted(communicator.size(), "rank"),
            config.reproducible ? "fixed tree (--reproducible)" : "the library's own order", config.steps, chosen);
  for (const TransportWish& wish : wishes_of(config)) {
    // Memory of a CPU is the host's.
    if (config.backend == "all" && host && wish.memory == MpiMemory::device) continue;
    TransportChoice choice;
    std::string obstacle;
    try {
      choice = choose_transport(wish, devices);
    } catch (const Error& e) {
      obstacle = e.what();
    }
    if (!obstacle.empty() && config.backend == "all") {
      log::info("left out: {}", obstacle);
      continue;
    }
    // Alike on all ranks, as the choice is.
    if (!obstacle.empty()) {
      if (communicator.rank() == 0) log::report_error(obstacle);
      return Exit::device;
    }
    if (!choice.warning.empty() && communicator.rank() == 0) log::warn("{}", choice.warning);
    log::info("sums: {}{}", choice.reason,
              !host && choice.transport == Transport::mpi && choice.memory == MpiMemory::host
                  ? ", through pinned host memory"
                  : "");
    SumBench bench(communicator, *backend, choice, config.reproducible, sizes.back());
    measure(communicator, bench, sizes, config);
  }
  return Exit::ok;
}

}  // namespace convoy
