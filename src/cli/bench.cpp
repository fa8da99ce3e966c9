// SPDX-License-Identifier: Apache-2.0
#include "cli/bench.hpp"

#include <time.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cli/launch.hpp"
#include "cli/output_file.hpp"
#include "comm/agreed_error.hpp"
#include "core/text.hpp"
#include "scaling/machine.hpp"

namespace convoy {

double cpu_seconds(CpuTime of) {
  timespec time{};
  clock_gettime(of == CpuTime::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Stopwatch::total() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }
double Stopwatch::mean() const { return seconds_.empty() ? 0 : total() / static_cast<double>(seconds_.size()); }
double Stopwatch::minimum() const { return seconds_.empty() ? 0 : *std::min_element(seconds_.begin(), seconds_.end()); }

std::vector<double> of_all_ranks(Communicator& communicator, double value, const char* what) {
  std::vector<double> values(static_cast<std::size_t>(communicator.size()), 0.0);
  values[static_cast<std::size_t>(communicator.rank())] = value;
  communicator.sum(std::span<double>(values), what);
  return values;
}

std::string print_ranks(const std::vector<double>& values) {
  if (values.size() > 16) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return fmt::format("{:.1f} to {:.1f}", *low, *high);
  }
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.1f}", text.empty() ? "" : " ", value);
  return text;
}

namespace {

/// `host b has 1 rank and host a has 2`; empty: all have as many.
std::string uneven_hosts(const std::vector<std::string>& hosts) {
  std::map<std::string, int> ranks;
  for (const std::string& host : hosts) ++ranks[host];
  const auto [fewest, most] =
      std::minmax_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (fewest->second == most->second) return {};
  return fmt::format("host {} has {} and host {} has {}", fewest->first, counted(fewest->second, "rank"), most->first,
                     most->second);
}

/// Collective. What would be found only after the measurement, or would spoil its result.
Exit check_files(Communicator& communicator, const BenchConfig& config) {
  return communicator.agreed_exit("looking at the files to write", [&] {
    if (communicator.rank() != 0) return;
    check_output("csv", config.csv, {config.machine});
    if (config.machine.empty()) return;
    check_output("machine", config.machine);
    machine_to_extend(config.machine, config.machine_name);
    if (const std::string uneven = uneven_hosts(communicator.hosts()); !uneven.empty())
      fail(Exit::usage,
           "--machine needs the same number of ranks on each host ({}); start it so, or leave --machine out", uneven);
  });
}

Exit run_bench(Session& session, const Words& words) try {
  const auto config = agree_on_config<BenchConfig>(session, words, parse_bench);
  if (!config) return Exit::usage;
  Communicator communicator(session, config->deadline);
  supervise(communicator, config->deadline);
  if (const Exit code = check_files(communicator, *config); code != Exit::ok) return code;
  if (config->what == "compute") return bench_compute(communicator, *config);
  if (config->what == "scaling") {
    // Ranks without work wait for measurements of unknown length.
    Communicator patient(session, StallLimits{0, 0});
    return bench_scaling(patient, *config);
  }
  if (config->what == "io") return bench_io(communicator, *config);
  return bench_comm(communicator, *config);
} catch (const AgreedError& error) {  // the rank that it concerns has logged why
  return error.code;
}

}  // namespace

Command bench_command() {
  return {
      .name = "bench",
      .overview = {"bench compute|scaling|io|comm", "measure one part"},
      .usage = "mpirun -np N convoy bench compute|scaling|io|comm [options]",
      .text =
          "Measures one part alone. compute: training steps on images in memory; scaling: the same on 1, 2, 4 ... ranks of the\n"
          "job; io: reading and preparing data without training; comm: all-reduces over the ranks.",
      .first_words = {"compute", "scaling", "io", "comm"},
      .lists_networks = true,
      .see_options = see_options<BenchConfig>,
      .on_ranks = run_bench};
}

}  // namespace convoy
