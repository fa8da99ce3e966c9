// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include "cli/bench.hpp"
#include "cli/compute_bench.hpp"
#include "core/log.hpp"
#include "io/text_file.hpp"

namespace convoy {
namespace {

struct Measured {
  int ranks = 0, hosts = 0;
  Index batch = 0;                         ///< of a rank
  double step = 0, fastest = 0, wait = 0;  ///< seconds, of the slowest rank
  std::string device, transport;
  double images_per_second() const { return step > 0 ? static_cast<double>(batch * ranks) / step : 0; }
};

/// 1, 2, 4 ... and all.
std::vector<int> counts_up_to(int ranks) {
  std::vector<int> counts;
  for (int count = 1; count < ranks; count *= 2) counts.push_back(count);
  counts.push_back(ranks);
  return counts;
}

/// Collective over the ranks of `part`.
Measured measure(Communicator& part, const BenchConfig& config) {
  ComputeBench bench(part, config);
  const BenchTimes times = bench.run(part, config.warmup, config.steps);
  double slowest[3] = {times.mean, times.fastest, times.wait};
  part.maximum(std::span<double>(slowest), "time of the steps");
  return {.ranks = part.size(),
          .hosts = static_cast<int>(std::set<std::string>(part.hosts().begin(), part.hosts().end()).size()),
          .batch = config.batch,
          .step = slowest[0],
          .fastest = slowest[1],
          .wait = slowest[2],
          .device = bench.engine().chosen_device(),
          .transport = bench.transport().substr(0, bench.transport().find(' '))};
}

class ScalingTable {
 public:
  ScalingTable(std::string path, const std::string& model) : path_(std::move(path)), model_(model) {
    std::error_code none;
    if (std::filesystem::is_other(path_, none))
      fail(Exit::usage, "cannot write the table to '{}' (it is a pipe, socket or device); choose a file for --csv",
           path_);
    if (std::filesystem::is_symlink(path_, none)) {
      const auto target = std::filesystem::canonical(path_, none);
      if (!none) path_ = target.string();  // the link stays
    }
  }

  /// Efficiency is that of the speed of one rank, or of the fewest there were, times the ranks.
  void add(const Measured& row) {
    if (csv_.empty()) {
      csv_ =
          "model,ranks,hosts,batch,global_batch,step_ms,min_ms,wait_ms,images_per_sec,images_per_sec_per_rank,speedup,efficiency,transport\n";
      first_ = row;
      log::info("{}, {}", model_, row.device);
      log::info("{:>6} {:>6} {:>7} {:>10} {:>10} {:>11} {:>11} {:>9} {:>11}", "ranks", "hosts", "batch", "step ms",
                "wait ms", "images/s", "a rank", "speed-up", "efficiency");
    }
    const double rate = row.images_per_second(), speedup = rate / first_.images_per_second();
    const double efficiency = speedup * first_.ranks / row.ranks;
    log::info("{:>6} {:>6} {:>7} {:>10.2f} {:>10.2f} {:>11.1f} {:>11.1f} {:>9.2f} {:>10.1f}%", row.ranks, row.hosts,
              row.batch, row.step * 1e3, row.wait * 1e3, rate, rate / row.ranks, speedup, efficiency * 100);
    csv_ += fmt::format("{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.3f},{:.3f},{:.4f},{:.4f},{}\n", model_, row.ranks,
                        row.hosts, row.batch, row.batch * row.ranks, row.step * 1e3, row.fastest * 1e3, row.wait * 1e3,
                        rate, rate / row.ranks, speedup, efficiency, row.transport);
    write();
  }

 private:
  /// After every row: a job that is cut off leaves what it has.
  void write() const {
    if (path_.empty()) return;
    try {
      replace_text_file(path_, csv_);
    } catch (const Error& e) {
      fail(Exit::usage, "{}; or choose another --csv", e.what());
    }
  }

  std::string path_, model_, csv_;
  Measured first_;
};

}  // namespace

Exit bench_scaling(Communicator& whole, const BenchConfig& config) {
  ScalingTable table(config.csv, config.model.model);
  for (const int ranks : counts_up_to(whole.size())) {
    BenchConfig part_config = config;
    if (config.strong) {
      if (config.batch % ranks != 0) {
        if (whole.rank() == 0)
          log::warn("--strong: {} images can't be dealt evenly to {} ranks; left out", config.batch, ranks);
        continue;
      }
      part_config.batch = config.batch / ranks;
    }
    const auto part = whole.first_ranks(ranks, config.deadline);
    if (part) {
      const Measured row = measure(*part, part_config);
      if (whole.rank() == 0) table.add(row);
    }
    // Those without work sleep here.
    whole.barrier("end of a measurement");
  }
  return Exit::ok;
}

}  // namespace convoy
