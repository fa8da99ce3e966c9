// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "backend/factory.hpp"
#include "cli/preflight.hpp"
#include "core/clock.hpp"
#include "core/counted.hpp"
#include "core/host_facts.hpp"
#include "core/launcher.hpp"
#include "core/version.hpp"
#include "core/wall_clock.hpp"
#include "engine/data.hpp"

namespace convoy {
namespace {

std::string as_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string as_json(double value) { return nlohmann::json(value).dump(); }
std::string as_json(bool value) { return value ? "true" : "false"; }

/// Runs a check of this rank alone; what it throws is a finding.
template <class Check>
void attempt(std::vector<Finding>& findings, const Check& check) {
  try {
    check();
  } catch (const Error& e) {
    if (e.code() == Exit::communication) throw;
    findings.push_back({e.code(), e.what(), {}});
  } catch (const std::exception& e) {
    findings.push_back({Exit::internal, e.what(), {}});
  }
}

/// `one` where all texts are equal, else what each group of ranks has.
std::string folded(const std::vector<std::string>& texts) {
  std::vector<std::string> kinds;
  for (const std::string& text : texts) {
    if (std::find(kinds.begin(), kinds.end(), text) == kinds.end()) kinds.push_back(text);
  }
  if (kinds.size() == 1) return kinds.front();
  std::string all;
  for (const std::string& kind : kinds) {
    const auto first = std::find(texts.begin(), texts.end(), kind) - texts.begin();
    all += fmt::format("{}{} ({} ranks, first {})", all.empty() ? "" : "; ", kind,
                       std::count(texts.begin(), texts.end(), kind), first);
  }
  return all;
}

/// Hosts with another build or MPI would fail in ways that are hard to read.
void compare_libraries(Communicator& communicator, Preflight& to) {
  const auto builds = communicator.all_gather(build_id() + ", " + compiler(), "builds of the ranks");
  const auto libraries = communicator.all_gather(mpi_version(), "MPI of the ranks");
  for (const auto& [name, texts] : {std::pair("builds of convoy", builds), std::pair("MPI libraries", libraries)}) {
    if (std::set<std::string>(texts.begin(), texts.end()).size() == 1) continue;
    to.findings.push_back(
        {Exit::usage, fmt::format("hosts have different {} ({}); install one for all", name, folded(texts)), {}});
  }
  const bool aware = mpi_takes_device_memory();
  to.facts.push_back({"mpi",
                      fmt::format("{}, {}CUDA-aware", libraries.front(), aware ? "" : "not "),
                      {{"library", as_json(libraries.front())}, {"cuda_aware", as_json(aware)}}});
}

struct SumTimes {
  double small = 0, large = 0;  ///< seconds, best of some, of the slowest rank
  static constexpr std::size_t large_count = 1 << 20;
};
SumTimes measure_sums(Communicator& communicator) {
  constexpr int small_rounds = 20, large_rounds = 3;
  std::vector<double> values(SumTimes::large_count, 1.0);
  const auto best_of = [&](int rounds, std::size_t count) {
    double best = 1e9;
    for (int i = 0; i < rounds; ++i) {
      communicator.barrier("start of a sum");
      const auto begin = real_clock().now();
      communicator.sum(std::span<double>(values.data(), count), "sum of the preflight");
      best = std::min(best, seconds_since(begin));
    }
    return best;
  };
  double times[2] = {best_of(small_rounds, 1), best_of(large_rounds, values.size())};
  communicator.maximum(std::span<double>(times), "times of the sums");
  return {times[0], times[1]};
}

/// Seconds by which each rank's clock is ahead of rank 0's: ranks leave a barrier almost together, and the least
/// difference seen is the clocks' own.
std::vector<double> compare_clocks(Communicator& communicator) {
  constexpr int rounds = 7;
  std::vector<double> least(static_cast<std::size_t>(communicator.size()), 1e18);
  double base = wall_seconds();
  communicator.broadcast(std::as_writable_bytes(std::span<double>(&base, 1)), 0, "clock of rank 0");
  for (int i = 0; i < rounds; ++i) {
    communicator.barrier("comparison of clocks");
    std::vector<double> now(least.size(), 0.0);
    now[static_cast<std::size_t>(communicator.rank())] = wall_seconds() - base;
    communicator.sum(std::span<double>(now), "comparison of clocks");
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      const double off = now[rank] - now[0];
      if (std::abs(off) < std::abs(least[rank])) least[rank] = off;
    }
  }
  return least;
}

}  // namespace

void check_places(Communicator& communicator, const DeviceConfig& config, Preflight& to) {
  to.placement = place_ranks(communicator, config);
  std::vector<Finding> mine;
  std::string device = "none", identity;
  attempt(mine, [&] {
    std::string chosen;
    const auto backend = make_backend({.device = config.device,
                                       .threads = to.placement.threads,
                                       .node_rank = communicator.node_rank(),
                                       .node_size = communicator.node_size()},
                                      chosen);
    device = backend->describe();
    identity = backend->identity();
  });
  if (communicator.rank() == 0) {  // the others may lack the variables of the job
    if (const HostShares shares = compare_with_node_file(communicator.hosts()); !shares.text.empty())
      mine.push_back({shares.misplaced ? Exit::device : Exit::ok, shares.text, {}});
  }
  share_findings(communicator, mine, to);
  const auto devices = communicator.all_gather(device, "devices of the ranks");
  const auto identities = communicator.all_gather(identity, "identities of the devices");
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    RankPlacement& own = to.placement.ranks[rank];
    own.device = devices[rank];
    own.identity = identities[rank];
    if (!identities[rank].empty() && own.device.find(identities[rank]) == std::string::npos)
      own.device += " " + identities[rank];
  }
  for (const SharedDevice& shared : find_shared_devices(to.placement))
    to.findings.push_back({Exit::device, shared.text, shared.ranks});
  for (const std::string& text : find_overbooked_cores(to.placement)) {
    to.findings.push_back(
        {Exit::device,
         text + "; start fewer ranks a host, or give each its cores (--cpus-per-task, mpirun --map-by slot:PE=N)",
         {}});
  }
}

void check_network(Communicator& communicator, Preflight& to) {
  compare_libraries(communicator, to);
  std::string links;
  for (const std::string& link : network_links()) links += (links.empty() ? "" : ", ") + link;
  const std::string seen = folded(communicator.all_gather(links.empty() ? "no link" : links, "network links"));
  Fact network{"network", seen, {{"links", as_json(seen)}}};
  if (communicator.size() > 1) {
    const SumTimes times = measure_sums(communicator);
    const double megabytes = static_cast<double>(SumTimes::large_count * sizeof(double)) / 1e6;
    network.text += fmt::format("; sum over the ranks of 8 bytes in {:.1f} us, of {:.1f} MB in {:.2f} ms ({:.0f} MB/s)",
                                1e6 * times.small, megabytes, 1e3 * times.large, megabytes / times.large);
    network.json["small_sum_seconds"] = as_json(times.small);
    network.json["large_sum_mb_per_sec"] = as_json(megabytes / times.large);
  }
  to.facts.push_back(std::move(network));

  const auto clocks = compare_clocks(communicator);
  const auto worst =
      std::max_element(clocks.begin(), clocks.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  const std::string& host = communicator.hosts()[static_cast<std::size_t>(worst - clocks.begin())];
  to.facts.push_back({"clocks",
                      fmt::format("within {:.1f} ms of that of rank 0", 1e3 * std::abs(*worst)),
                      {{"most_off_seconds", as_json(*worst)}, {"host", as_json(host)}}});
  constexpr double tolerated_seconds = 1;
  if (std::abs(*worst) > tolerated_seconds)
    to.findings.push_back({Exit::ok,
                           fmt::format("the clock of {} is {:+.1f} s off that of {}; set the time by NTP", host, *worst,
                                       communicator.hosts().front()),
                           {}});
}

void check_data(Communicator& communicator, const DataConfig& config, Preflight& to) {
  const bool given = config.synthetic || !config.folder.empty() || !config.train_folder.empty();
  if (!given) {
    to.facts.push_back({"data", "not given (--data DIR)", {{"checked", "false"}}});
    return;
  }
  if (config.synthetic) {
    to.facts.push_back({"data", "synthetic images, made in memory", {{"checked", "false"}}});
    return;
  }
  std::vector<Finding> mine;
  std::string text = "can't be read";
  const auto begin = real_clock().now();
  attempt(mine, [&] {
    std::string found;
    for (const char* split : {"train", "val"}) {
      if (split == std::string("val") && !split_exists(config, split)) continue;
      const DatasetInfo info = open_split(config, split);
      found += fmt::format("{}{} in {} of split {} ({:016x})", found.empty() ? "" : ", ", tell_images(info),
                           counted(info.partitions.size(), "partition"), split, info.digest);
    }
    text = found;
  });
  double seconds[1] = {seconds_since(begin)};
  communicator.maximum(std::span<double>(seconds), "time of opening the data set");
  const auto all = communicator.all_gather(text, "data set as ranks see it");
  share_findings(communicator, mine, to);
  const bool same = std::set<std::string>(all.begin(), all.end()).size() == 1;
  if (!same && code_of(to) == Exit::ok)
    to.findings.push_back(
        {Exit::data,
         fmt::format("ranks see different data sets ({}); give a folder that all hosts share", folded(all)),
         {}});
  to.facts.push_back({"data",
                      fmt::format("{}; opened by every rank in {:.2f} s at most", folded(all), seconds[0]),
                      {{"checked", "true"}, {"seen", as_json(folded(all))}, {"open_seconds", as_json(seconds[0])}}});
}

}  // namespace convoy
