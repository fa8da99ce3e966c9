// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend/factory.hpp"
#include "cli/launch.hpp"
#include "cli/preflight_report.hpp"
#include "cli/stress.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/clock.hpp"
#include "core/host_facts.hpp"
#include "core/json.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/text.hpp"
#include "core/topology.hpp"
#include "core/version.hpp"
#include "core/wall_clock.hpp"
#include "data/partition.hpp"
#include "engine/data.hpp"
#include "engine/placement.hpp"
#include "engine/shared_data.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"
#include "run/excluded_hosts.hpp"

namespace convoy {
namespace {

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
                      {{"library", libraries.front()}, {"cuda_aware", aware}}});
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
         text + "; start fewer ranks per host, or give each its cores (--cpus-per-task, mpirun --map-by slot:PE=N)",
         {}});
  }
}

void check_network(Communicator& communicator, Preflight& to) {
  compare_libraries(communicator, to);
  std::string links;
  for (const std::string& link : network_links()) links += (links.empty() ? "" : ", ") + link;
  const std::string seen = folded(communicator.all_gather(links.empty() ? "no link" : links, "network links"));
  Fact network{"network", seen, {{"links", seen}}};
  if (communicator.size() > 1) {
    const SumTimes times = measure_sums(communicator);
    const double megabytes = static_cast<double>(SumTimes::large_count * sizeof(double)) / 1e6;
    network.text += fmt::format("; all-reduce of 8 bytes in {:.1f} us, of {:.1f} MB in {:.2f} ms ({:.0f} MB/s)",
                                1e6 * times.small, megabytes, 1e3 * times.large, megabytes / times.large);
    network.json["small_sum_seconds"] = times.small;
    network.json["large_sum_mb_per_sec"] = megabytes / times.large;
  }
  to.facts.push_back(std::move(network));

  const auto clocks = compare_clocks(communicator);
  const auto worst =
      std::max_element(clocks.begin(), clocks.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  const std::string& host = communicator.hosts()[static_cast<std::size_t>(worst - clocks.begin())];
  to.facts.push_back({"clocks",
                      fmt::format("within {:.1f} ms of that of rank 0", 1e3 * std::abs(*worst)),
                      {{"most_off_seconds", *worst}, {"host", host}}});
  constexpr double tolerated_seconds = 1;
  if (std::abs(*worst) > tolerated_seconds)
    to.findings.push_back({Exit::ok,
                           fmt::format("the clock of {} is {:+.1f} s off that of {}; set the time by NTP", host, *worst,
                                       communicator.hosts().front()),
                           {}});
}

/// Throws Error(data) if this host's folder lacks a partition that rank 0 has read, or if partition `one` has another
/// checksum here.
void compare_partition(const DatasetInfo& split, const PartitionInfo& one) {
  std::set<std::string> names;
  std::error_code reason;
  for (std::filesystem::directory_iterator at(split.folder, reason), end; !reason && at != end; at.increment(reason))
    names.insert(at->path().string());
  if (reason)
    fail(Exit::data, "cannot list the data folder '{}' ({}); make it readable on every host", split.folder,
         reason.message());
  for (const PartitionInfo& part : split.partitions)
    if (!names.contains(part.path))
      fail(Exit::data,
           "'{}' exists on the host of rank 0 and is missing on this one; give a folder that all hosts share",
           part.path);
  if (read_partition(one.path).seal_crc != one.seal_crc)
    fail(
        Exit::data,
        "'{}' on this host differs from the file on the host of rank 0 (different checksum); give a folder that all hosts share",
        one.path);
}

/// Checks that this host sees the split that rank 0 has read. One rank of each other host lists the folder and reads
/// one header, since a thousand hosts that read every header would burden the file system. With at least as many other
/// hosts as partitions, every partition is compared.
void compare_host(const Communicator& communicator, const DatasetInfo& split, std::vector<Finding>& mine) {
  const auto& hosts = communicator.hosts();
  const NodePlace place = find_node_place(hosts, communicator.rank());
  if (place.rank != 0 || place.first == 0) return;
  const std::size_t number = std::set<std::string>(hosts.begin(), hosts.begin() + place.first).size();
  attempt(mine, [&] { compare_partition(split, split.partitions[number % split.partitions.size()]); });
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
  std::vector<DatasetInfo> splits;
  const auto begin = real_clock().now();
  if (communicator.rank() == 0) {
    attempt(mine, [&] {
      splits.push_back(open_split(config, "train"));
      if (split_exists(config, "val")) splits.push_back(open_split(config, "val"));
    });
  }
  const double seconds = seconds_since(begin);
  std::int64_t count[1] = {mine.empty() ? std::ssize(splits) : 0};
  communicator.broadcast(std::as_writable_bytes(std::span(count)), 0, "number of splits");
  splits.resize(static_cast<std::size_t>(count[0]));
  for (DatasetInfo& split : splits) {
    share(communicator, split);
    compare_host(communicator, split, mine);
  }
  share_findings(communicator, mine, to);

  const std::set<std::string> hosts(communicator.hosts().begin(), communicator.hosts().end());
  std::string text = splits.empty() ? "could not be read; see the findings" : "";
  for (const DatasetInfo& split : splits)
    text += fmt::format("{}{} in {} of split {} ({:016x})", text.empty() ? "" : ", ", tell_images(split),
                        counted(split.partitions.size(), "partition"), split.split, split.digest);
  if (splits.size() == 1) text += "; no val split (--val-data DIR), so nothing will be evaluated";
  const std::string seen = text;
  if (!splits.empty()) text += fmt::format("; headers read in {:.2f} s", seconds);
  if (!splits.empty() && hosts.size() > 1) text += fmt::format(", compared on {} hosts", hosts.size());
  to.facts.push_back({"data", text, {{"checked", true}, {"seen", seen}, {"open_seconds", seconds}}});
}

namespace fs = std::filesystem;

constexpr std::size_t written_bytes = 32 << 20;

/// A file that is gone at the end of the scope.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() { ::unlink(path_.c_str()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Makes what is missing of `path`; says what that was, outermost first.
std::vector<fs::path> make_missing_folders(const fs::path& path) {
  std::vector<fs::path> missing;
  std::error_code reason;
  for (fs::path at = path; !at.empty() && !fs::exists(at, reason); at = at.parent_path())
    missing.insert(missing.begin(), at);
  make_folder(path.string(), "choose a writable --output-dir");
  return missing;
}

/// Bytes a second, written and synced.
double measure_writing(const std::string& path) {
  const Scratch scratch(path);
  const std::vector<char> block(std::size_t{4} << 20, 'c');
  const auto begin = real_clock().now();
  File file(path, File::Access::create);
  for (std::size_t at = 0; at < written_bytes; at += block.size()) file.write_at(block.data(), block.size(), at);
  file.sync();
  return static_cast<double>(written_bytes) / seconds_since(begin);
}

/// Another host's new file may take a moment to show on a network file system.
bool appears(const std::string& path) {
  constexpr int attempts = 40;
  for (int i = 0; i < attempts; ++i) {
    std::error_code unknown;
    if (fs::exists(path, unknown)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

void check_run_folder(Communicator& communicator, const TrainConfig& config, Preflight& to) {
  const std::string folder = config.output.folder.empty() ? "runs" : config.output.folder;
  std::string marker = fmt::format("{}/.preflight-{}-{}", folder, communicator.host(), getpid());
  communicator.broadcast(marker, "name of the preflight's file");
  std::vector<Finding> mine;
  std::vector<fs::path> made;
  double bytes_per_second[1] = {0};
  const bool first = communicator.rank() == 0;
  if (first) {
    // Errors of writing are about the folder that was chosen.
    attempt(
        mine,
        [&] {
          made = make_missing_folders(folder);
          bytes_per_second[0] = measure_writing(marker);
          File(marker, File::Access::create);
        },
        Exit::data);
  }
  // What rank 0 found is known to all before the others look for its file.
  double failed[1] = {mine.empty() ? 0.0 : 1.0};
  communicator.maximum(std::span<double>(failed), "state of the run directory");
  communicator.maximum(std::span<double>(bytes_per_second), "speed of writing");
  if (failed[0] == 0 && communicator.node_rank() == 0 && !first) {
    attempt(
        mine,
        [&] {
          if (!appears(marker))
            fail(Exit::usage, "{} does not see '{}' of {}; choose an --output-dir that all hosts share",
                 communicator.host(), folder, communicator.hosts().front());
          const Scratch own(fmt::format("{}.{}", marker, communicator.rank()));
          File(own.path(), File::Access::create);
        },
        Exit::usage);
  }
  communicator.barrier("look at the run directory");
  const HostNames hosts = names_of_hosts(communicator);
  if (first) {
    if (const std::string text = warning_of_excluded(folder, hosts); !text.empty())
      mine.push_back({Exit::ok, text, {}});
  }
  share_findings(communicator, mine, to);
  const Room room = room_at(folder);
  if (first) {
    ::unlink(marker.c_str());
    std::error_code ignored;
    for (auto at = made.rbegin(); at != made.rend(); ++at) fs::remove(*at, ignored);
  }
  constexpr double giga = 1e9, mega = 1e6, little_bytes = 1e9, few_files = 1000;
  std::string text = fmt::format("'{}'", folder), free_text = "0", rate_text = "0";
  if (failed[0] == 0) {
    text += fmt::format(", {:.0f} MB/s written and synced, {:.1f} GB free, seen by all hosts",
                        bytes_per_second[0] / mega, room.free_bytes / giga);
    if (room.free_bytes < little_bytes)
      to.findings.push_back(
          {Exit::ok, fmt::format("'{}' has {:.2f} GB left; make room", folder, room.free_bytes / giga), {}});
    if (room.free_files >= 0 && room.free_files < few_files)
      to.findings.push_back(
          {Exit::ok, fmt::format("'{}' has room for {:.0f} files; make room", folder, room.free_files), {}});
  } else {
    text += " can't be used";
  }
  to.facts.push_back(
      {"run_directory",
       text,
       {{"path", folder}, {"write_mb_per_sec", bytes_per_second[0] / mega}, {"free_gb", room.free_bytes / giga}}});
}

Exit run_preflight(Session& session, const Words& words) {
  const auto config = agree_on_config<PreflightConfig>(session, words, parse_preflight);
  if (!config) return Exit::usage;
  Communicator communicator(session, config->train.sync.deadline);
  supervise(communicator, config->train.sync.deadline);
  Preflight preflight;
  check_places(communicator, config->train.device, preflight);
  check_network(communicator, preflight);
  check_data(communicator, config->train.data, preflight);
  check_run_folder(communicator, config->train, preflight);
  if (config->stress_seconds > 0) stress(communicator, *config, preflight);
  if (communicator.rank() == 0) write_output(config->json ? json_of(preflight) : text_of(preflight));
  return code_of(preflight);
}

}  // namespace

Command preflight_command() {
  return {
      .name = "preflight",
      .overview = {"preflight --data DIR", "check ranks, devices, network and folders before a job"},
      .usage = "mpirun -np N convoy preflight --data DIR --output-dir DIR [options]",
      .text =
          "Checks what a job needs before it starts. Use the launch line and the options of the job. For each rank it prints\n"
          "host, device, cores, NUMA nodes and threads. It checks the network, MPI and clocks, whether all hosts see the\n"
          "data set, and whether they can write the run directory. --stress SECONDS also makes each rank compute, fills\n"
          "memory, writes and reads files and lets all pairs of ranks exchange messages, and names what is wrong or slow.\n"
          "It exits with 0, or with the highest of: 2 different builds, or a host that does not see the run directory; 3 data,\n"
          "or a run directory that cannot be written; 4 devices or cores that ranks share by accident; 7 wrong arithmetic or\n"
          "memory. It ignores options of 'convoy train' that do not matter here.",
      .see_options = see_options<PreflightConfig>,
      .on_ranks = run_preflight};
}

}  // namespace convoy
