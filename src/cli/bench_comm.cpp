// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "backend/factory.hpp"
#include "cli/bench.hpp"
#include "cli/output_file.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "scaling/fit.hpp"

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
    work_ = backend.allocate(2 * piece);
  }

  /// Collective.
  void run(Index floats) {
    collectives_->finish(submit(floats));
    collectives_->await(backend_.record(), "bench all-reduce");
  }

  /// Adds of a piece of memory, as backward works while sums go on.
  void compute(Index pieces) {
    for (Index i = 0; i < pieces; ++i) {
      backend_.add(work_, work_ + piece, piece);
      collectives_->poll();
    }
  }
  /// Collective. The sum, with computation beside it.
  void run_beside(Index floats, Index pieces) {
    const Ticket ticket = submit(floats);
    compute(pieces);
    collectives_->finish(ticket);
    collectives_->await(backend_.record(), "bench all-reduce");
  }
  void run_compute(Index pieces) {
    compute(pieces);
    collectives_->await(backend_.record(), "bench computation");
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
  static constexpr Index piece = 1 << 16;

  Ticket submit(Index floats) {
    const Part part{communicator_.rank(), 1, mine_};
    return collectives_->submit({.out = sum_,
                                 .parts = std::span(&part, 1),
                                 .count = floats,
                                 .after = backend_.record(),
                                 .what = "bench all-reduce"});
  }

  Communicator& communicator_;
  Backend& backend_;
  std::unique_ptr<Collectives> collectives_;
  float *mine_ = nullptr, *sum_ = nullptr, *work_ = nullptr;
};

struct TimedMessage {
  Index floats = 0;
  double mean = 0, fastest = 0;  ///< seconds, of the slowest rank
};

/// Collective. Times `body` on all ranks at once.
template <class Body>
TimedMessage time_of(Communicator& communicator, const BenchConfig& config, const Body& body) {
  for (Index i = 0; i < config.warmup; ++i) body();
  Stopwatch watch;
  for (Index i = 0; i < config.steps; ++i) {
    communicator.barrier("start of a message");
    watch.start();
    body();
    watch.stop();
  }
  double slowest[2] = {watch.mean(), watch.minimum()};
  communicator.maximum(std::span<double>(slowest), "time of the messages");
  return {.mean = slowest[0], .fastest = slowest[1]};
}

/// The ways that the user wants to see.
std::vector<TransportWish> wishes_of(const BenchConfig& config) {
  const MpiMemory memory = config.cuda_aware ? MpiMemory::device : MpiMemory::host;
  const auto wish = [&](const char* backend, MpiMemory through) {
    return TransportWish{.backend = backend, .in_tree = config.reproducible, .memory = through};
  };
  if (config.backend != "all") return {wish(config.backend.c_str(), memory)};
  return {wish("mpi", MpiMemory::host), wish("mpi", MpiMemory::device), wish("shared", MpiMemory::host),
          wish("nccl", MpiMemory::host)};
}

/// Collective.
std::vector<TimedMessage> measure(Communicator& communicator, SumBench& bench, const std::vector<Index>& sizes,
                                  const BenchConfig& config) {
  std::vector<TimedMessage> all;
  const int ranks = communicator.size();
  // Bus bandwidth as NCCL's tests define it: what each link carries of a ring, 2 (R - 1) / R of the message.
  log::info("{:>14} {:>11} {:>11} {:>12} {:>12}", "bytes", "mean ms", "min ms", "algo GB/s", "bus GB/s");
  for (const Index floats : sizes) {
    TimedMessage found = time_of(communicator, config, [&] { bench.run(floats); });
    bench.check(floats);
    found.floats = floats;
    all.push_back(found);
    const double rate = static_cast<double>(floats) * 4 / found.mean / 1e9;
    log::info("{:>14} {:>11.3f} {:>11.3f} {:>12.3f} {:>12.3f}", floats * 4, found.mean * 1e3, found.fastest * 1e3, rate,
              rate * 2 * (ranks - 1) / ranks);
  }
  return all;
}

double messages_of(int ranks, bool tree) { return tree ? tree_messages(ranks) : library_messages(ranks); }

/// Collective. From computation and sums alone and together, with about as much of each.
double measure_overlap(Communicator& communicator, SumBench& bench, const TimedMessage& sum,
                       const BenchConfig& config) {
  double piece = time_of(communicator, config, [&] { bench.run_compute(64); }).mean / 64;
  communicator.maximum(std::span<double>(&piece, 1), "time of a piece");
  const Index pieces = std::max<Index>(1, std::llround(sum.mean / piece));
  const double compute = time_of(communicator, config, [&] { bench.run_compute(pieces); }).mean,
               both = time_of(communicator, config, [&] { bench.run_beside(sum.floats, pieces); }).mean;
  const double overlap = overlap_of(compute, sum.mean, both);
  log::info(
      "computation of {:.2f} ms beside an all-reduce of {:.2f} ms: {:.2f} ms together, so {:.0f} % of the all-reduce is hidden",
      compute * 1e3, sum.mean * 1e3, both * 1e3, overlap * 100);
  return overlap;
}

const char* transport_name(Transport transport) { return transport == Transport::nccl ? "nccl" : "mpi"; }

std::string describe(const char* where, const Link& link) {
  return fmt::format("{}: {:.1f} us per message (within {:.0f} %), {:.3f} GB/s (within {:.0f} %)", where,
                     link.seconds_per_message.value * 1e6, link.seconds_per_message.error * 100,
                     link.seconds_per_byte.value > 0 ? 1e-9 / link.seconds_per_byte.value : 0.0,
                     link.seconds_per_byte.error * 100);
}

/// Collective. Adds to the description what the ranks' places allow: links inside a host if the first one has
/// several ranks, links between hosts if there are several.
class MachineBench {
 public:
  MachineBench(Communicator& communicator, Backend& backend, const TransportChoice& choice, const BenchConfig& config)
      : communicator_(communicator), backend_(backend), choice_(choice), config_(config) {}

  void run() {
    const auto& names = communicator_.hosts();
    const int hosts = static_cast<int>(std::set<std::string>(names.begin(), names.end()).size());
    const int own = static_cast<int>(std::count(names.begin(), names.end(), names.front()));
    const std::string path = link_target(config_.machine);
    machine_ = machine_to_extend(path, config_.machine_name);
    machine_.cores_per_host = backend_.host_reads() ? static_cast<int>(std::thread::hardware_concurrency()) : 0;
    machine_.ranks_per_host = own;
    const auto sizes = sizes_in_floats(0);
    if (hosts > 1 && own > 1) {
      const bool leads = std::all_of(names.begin(), names.begin() + own,
                                     [&](const std::string& name) { return name == names.front(); });
      if (!leads) fail(Exit::usage, "the ranks of the first host are not the first ranks; start them ordered by host");
      const auto host = communicator_.first_ranks(own, config_.deadline);
      if (host) measure_inside(*host, sizes);
      share_inside();
    } else if (hosts == 1) {
      measure_inside(communicator_, sizes);
    }
    if (hosts > 1) measure_between(sizes, hosts, own);
    if (communicator_.rank() == 0) write_machine(path, machine_);
    log::info("the machine's description is in '{}'", config_.machine);
  }

 private:
  static std::vector<TimedSum> timings(const std::vector<TimedMessage>& found, double messages, double share) {
    std::vector<TimedSum> all;
    all.reserve(found.size());
    for (const TimedMessage& one : found)
      all.push_back({.messages = messages, .bytes = share * static_cast<double>(one.floats) * 4, .seconds = one.mean});
    return all;
  }

  void measure_inside(Communicator& host, const std::vector<Index>& sizes) {
    if (host.size() < 2) return;
    TransportChoice choice = choice_;
    // As sums of several hosts, which MPI adds inside a host, too.
    if (host.size() < communicator_.size()) choice.host_sums = HostSums::library;
    SumBench bench(host, backend_, choice, config_.reproducible, sizes.back());
    const auto found = measure(host, bench, sizes, config_);
    machine_.inside =
        fit_link(timings(found, messages_of(host.size(), config_.reproducible), share_of_ring(host.size())));
    machine_.inside->ranks = host.size();
    machine_.inside->transport = transport_name(choice_.transport);
    machine_.overlap = measure_overlap(host, bench, found.back(), config_);
    machine_.overlap_measured = true;
    log::info("{}", describe("inside a host", *machine_.inside));
  }

  /// What the first host found, for the ranks of the others.
  void share_inside() {
    const Link& own = machine_.inside ? *machine_.inside : Link{};
    double terms[2] = {0, 0};
    if (communicator_.rank() == 0) {
      terms[0] = own.seconds_per_message.value;
      terms[1] = own.seconds_per_byte.value;
    }
    communicator_.sum(std::span<double>(terms), "terms of a link");
    inside_message_ = terms[0];
    inside_byte_ = terms[1];
  }

  /// The time inside the hosts, as the prediction has it, is taken off.
  void measure_between(const std::vector<Index>& sizes, int hosts, int own) {
    SumBench bench(communicator_, backend_, choice_, config_.reproducible, sizes.back());
    const auto found = measure(communicator_, bench, sizes, config_);
    const bool tree = config_.reproducible;
    const double ranks = communicator_.size(), others = ranks - own;
    auto rest = timings(found, tree ? 2 * others : library_messages(hosts),
                        tree ? 2 * own * others / ranks : share_of_ring(hosts));
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const double inside = inside_message_ * messages_of(own, tree) +
                            inside_byte_ * share_of_ring(own) * static_cast<double>(found[i].floats) * 4;
      rest[i].seconds = std::max(rest[i].seconds - inside, rest[i].seconds / 10);
    }
    machine_.between = fit_link(rest);
    machine_.between->ranks = communicator_.size();
    machine_.between->transport = transport_name(choice_.transport);
    machine_.overlap = measure_overlap(communicator_, bench, found.back(), config_);
    machine_.overlap_measured = true;
    log::info("{}", describe("between hosts", *machine_.between));
  }

  Communicator& communicator_;
  Backend& backend_;
  const TransportChoice& choice_;
  const BenchConfig& config_;
  Machine machine_;
  double inside_message_ = 0, inside_byte_ = 0;
};

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
    log::info("all-reduce: {}{}", choice.reason,
              !host && choice.transport == Transport::mpi && choice.memory == MpiMemory::host
                  ? ", through pinned host memory"
                  : "");
    if (!config.machine.empty()) {
      MachineBench(communicator, *backend, choice, config).run();
      continue;
    }
    SumBench bench(communicator, *backend, choice, config.reproducible, sizes.back());
    measure(communicator, bench, sizes, config);
  }
  return Exit::ok;
}

}  // namespace convoy
