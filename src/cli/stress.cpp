// SPDX-License-Identifier: Apache-2.0
#include "cli/stress.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <map>

#include "core/clock.hpp"
#include "core/hash.hpp"
#include "core/host_facts.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "data/dataset.hpp"
#include "engine/engine.hpp"
#include "io/file.hpp"
#include "train/arithmetic_verdict.hpp"

namespace convoy {
namespace {

/// Shares of --stress; the links take as long as all pairs need.
constexpr double arithmetic_share = 0.5, memory_share = 0.25, disk_share = 0.25;
/// The other ranks of a host wait meanwhile, and a wait of minutes would count as a stall.
constexpr double most_disk_seconds = 60;

/// A number for each place, so that a place that holds another's number is noticed.
std::uint64_t pattern(std::uint64_t seed, std::size_t place) { return mix_bits(seed * 0x9e3779b97f4a7c15ULL + place); }

void fill(std::vector<std::uint64_t>& words, std::uint64_t seed) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = pattern(seed, i);
}

/// The first word that isn't what fill() made; the size: all are.
std::size_t first_wrong(const std::vector<std::uint64_t>& words, std::uint64_t seed) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] != pattern(seed, i)) return i;
  return words.size();
}

/// For tests: --inject-fault of this rank.
bool has_fault(const PreflightConfig& config, const Communicator& ranks, const char* kind) {
  return config.train.fault_kind == kind && config.train.fault_rank == ranks.rank();
}

/// A small network whose training step is repeated, always with the same weights and images.
class RepeatedStep {
 public:
  /// Collective.
  RepeatedStep(Communicator& communicator, const DeviceConfig& device)
      : model_(with_usual_input({.model = "resnet20"}, 0, 0, 0)),
        engine_(make_engine(communicator, build_graph(model_), spec(device))),
        collectives_(make_mpi_collectives(communicator, engine_->backend(), {.replicas = communicator.size()})),
        set_{engine_->backend().allocate(engine_->layout().count()), engine_->layout().count()} {
    const SyntheticSpec images{.samples = batch,
                               .height = model_.image_size,
                               .width = model_.image_size,
                               .channels = model_.channels,
                               .classes = model_.classes,
                               .seed = 1};
    const auto bytes = static_cast<std::size_t>(images.height * images.width * images.channels);
    pixels_.resize(bytes * batch);
    samples_.resize(batch);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      samples_[i].sample = samples_[i].position = static_cast<Index>(i);
      samples_[i].a = synthetic_sample(images, static_cast<Index>(i), pixels_.data() + i * bytes);
    }
    engine_->upload(set_, engine_->initial_set(1), *collectives_);
    gradients_.resize(static_cast<std::size_t>(engine_->plan().table.trained_floats()));
  }

  /// Of the gradients. `fault`: a bit of them flips.
  std::uint64_t run(bool fault) {
    Backend& device = engine_->backend();
    device.set_step({.learning_rate = 1e-3F, .seed = 1, .step = 0, .options = {{0.9}}});
    Program& program = engine_->training(batch);
    program.feed({.samples = samples_,
                  .images = pixels_.data(),
                  .resident = -1,
                  .valid_count = batch,
                  .scale = 1.F / batch,
                  .norm_scale = 1.F / batch});
    for (std::size_t stage = 0; stage < engine_->stages().size(); ++stage) program.launch(stage, set_);
    collectives_->await(
        device.download(gradients_.data(), engine_->gradients(), std::ssize(gradients_), device.record()),
        "gradients of the stress test");
    if (fault) gradients_.front() = std::bit_cast<float>(std::bit_cast<std::uint32_t>(gradients_.front()) ^ 1U);
    return hash_bytes(gradients_.data(), gradients_.size() * sizeof(float));
  }

 private:
  static constexpr Index batch = 32;

  EngineSpec spec(const DeviceConfig& device) const {
    InputSpec input;
    input.height = input.width = model_.image_size;
    input.channels = model_.channels;
    input.mean.fill(127.5F);
    input.std.fill(64.F);
    EngineSpec spec;
    spec.device = device;
    spec.sizes = {{.input = input, .height = model_.image_size, .width = model_.image_size, .train_sizes = {batch}}};
    return spec;
  }

  GraphSpec model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Collectives> collectives_;
  ParameterSet set_;
  std::vector<std::uint8_t> pixels_;
  std::vector<SampleSpec> samples_;
  std::vector<float> gradients_;
};

/// Collective. Ranks on a device that others have too must compute what most of their hosts do.
void compare_ranks(Communicator& communicator, std::uint64_t own, Preflight& to) {
  const auto all = communicator.all_gather(fmt::format("{:016x}", own), "results of the stress test");
  std::map<std::string, std::vector<int>> by_device;
  for (const RankPlacement& rank : to.placement.ranks) {
    std::string kind = rank.device;
    // A card's own number says nothing about its arithmetic.
    if (const auto at = rank.identity.empty() ? std::string::npos : kind.find(rank.identity); at != std::string::npos)
      kind.erase(at);
    by_device[kind].push_back(rank.rank);
  }
  for (const auto& [device, ranks] : by_device) {
    std::vector<std::uint64_t> digests;
    std::vector<std::string> hosts;
    for (const int rank : ranks) {
      digests.push_back(hash_text(all[static_cast<std::size_t>(rank)]));
      hosts.push_back(communicator.hosts()[static_cast<std::size_t>(rank)]);
    }
    const auto verdict = judge_weights(digests, hosts);
    if (!verdict) continue;
    Finding finding{Exit::arithmetic, {}, {}};
    for (const int i : verdict->wrong) finding.ranks.push_back(ranks[static_cast<std::size_t>(i)]);
    finding.text =
        verdict->certain
            ? fmt::format("other bits than most ranks on '{}' compute for the same step; keep the job off this host",
                          device)
            : fmt::format(
                  "ranks on '{}' compute different bits for the same step, and no result has a majority "
                  "of the hosts; test with more hosts",
                  device);
    to.findings.push_back(std::move(finding));
  }
}

/// Collective.
void stress_arithmetic(Communicator& communicator, const PreflightConfig& config, double seconds, Preflight& to) {
  RepeatedStep step(communicator, config.train.device);
  std::vector<Finding> mine;
  const auto begin = real_clock().now();
  const bool fault = has_fault(config, communicator, "flip-convolution");
  const std::uint64_t first = step.run(fault && config.train.fault_step == 0);
  std::int64_t steps = 1;
  for (; steps == 1 || seconds_since(begin) < seconds; ++steps) {  // two at least: one has nothing to differ from
    if (step.run(fault && config.train.fault_step == steps) == first) continue;
    mine.push_back(
        {Exit::arithmetic,
         fmt::format("{} computes the same step with different bits; keep the job off this host", communicator.host()),
         {}});
    break;
  }
  const double passed = seconds_since(begin);
  share_findings(communicator, mine, to);
  compare_ranks(communicator, first, to);
  communicator.sum(std::span<std::int64_t>(&steps, 1), "steps of the stress test");
  to.facts.push_back({"arithmetic",
                      fmt::format("{} of resnet20 in {:.1f} s", counted(steps, "step"), passed),
                      {{"steps", static_cast<double>(steps)}}});
}

/// Collective.
void stress_memory(Communicator& communicator, const PreflightConfig& config, double seconds, Preflight& to) {
  constexpr double most = 1 << 30, unknown = 1 << 28, share = 0.25;
  const double free = available_memory();
  const double bytes = std::min(most, free > 0 ? share * free / communicator.node_size() : unknown);
  std::vector<Finding> mine;
  std::vector<std::uint64_t> words(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t));
  const auto begin = real_clock().now();
  std::uint64_t round = 0;
  do {
    fill(words, round);
    if (has_fault(config, communicator, "flip-memory")) words[words.size() / 2] ^= 1;
    if (const std::size_t wrong = first_wrong(words, round); wrong < words.size()) {
      mine.push_back(
          {Exit::arithmetic,
           fmt::format("memory of {} gives other bits than were written to it ({:016x} instead of {:016x}); keep the "
                       "job off this host",
                       communicator.host(), words[wrong], pattern(round, wrong)),
           {}});
      break;
    }
    ++round;
  } while (seconds_since(begin) < seconds);
  share_findings(communicator, mine, to);
  to.facts.push_back({"memory",
                      fmt::format("{:.0f} MB per rank written and read {}", bytes / 1e6,
                                  round == 1 ? "once" : fmt::format("{} times", round)),
                      {{"mb_per_rank", bytes / 1e6}}});
}

/// Collective. One rank per host, in the run directory or above it.
void stress_disk(Communicator& communicator, const PreflightConfig& config, double seconds, Preflight& to) {
  std::vector<Finding> mine;
  std::vector<std::uint64_t> words((std::size_t{32} << 20) / sizeof(std::uint64_t));
  const std::size_t bytes = words.size() * sizeof(std::uint64_t);
  std::error_code unknown;
  std::filesystem::path folder =
      std::filesystem::absolute(config.train.output.folder.empty() ? "." : config.train.output.folder);
  while (!std::filesystem::exists(folder, unknown)) folder = folder.parent_path();
  const std::string path = fmt::format("{}/.stress-{}-{}", folder.string(), communicator.host(), getpid());
  std::array<double, 1> slowest{1e18};
  if (communicator.node_rank() == 0) {
    const auto begin = real_clock().now();
    std::uint64_t round = 0;
    attempt(
        mine,
        [&] {
          do {
            fill(words, ++round);
            const auto start = real_clock().now();
            {
              File file(path, File::Access::create);
              file.write_at(words.data(), bytes, 0);
              file.sync();
            }
            forget_cached(path);
            std::fill(words.begin(), words.end(), 0);
            File(path, File::Access::read).read_at(words.data(), bytes, 0);
            slowest[0] = std::min(slowest[0], static_cast<double>(bytes) / seconds_since(start));
            if (first_wrong(words, round) < words.size())
              fail(Exit::data, "'{}' gives {} other bytes than it wrote there; use another file system",
                   folder.string(), communicator.host());
          } while (seconds_since(begin) < seconds);
        },
        Exit::data);
    ::unlink(path.c_str());
  }
  share_findings(communicator, mine, to);
  communicator.minimum(std::span<double>(slowest), "speed of the disks");
  to.facts.push_back({"disk",
                      fmt::format("'{}': {:.0f} MB written, synced and read at {:.0f} MB/s by the slowest host",
                                  folder.string(), static_cast<double>(bytes) / 1e6, slowest[0] / 1e6),
                      {{"slowest_mb_per_sec", slowest[0] / 1e6}}});
}

/// The rank that `rank` meets in a round, when each of `even` ranks meets all others: the last stays, the others
/// turn in a circle.
int partner(int rank, int round, int even) {
  const int turning = even - 1;
  if (rank == turning) return round % turning * (even / 2) % turning;
  const int other = ((2 * turning + round - rank) % turning);
  return other == rank ? turning : other;
}

/// Collective.
void stress_links(Communicator& communicator, Preflight& to) {
  const int ranks = communicator.size(), own = communicator.rank();
  if (ranks < 2) return;
  constexpr int times = 3;
  std::vector<std::uint64_t> sent(std::size_t{1} << 17), received(sent.size());  // 1 MB
  const double bytes = static_cast<double>(sent.size() * sizeof(std::uint64_t));
  std::vector<Finding> mine;
  std::vector<std::pair<double, int>> rates;  ///< bytes a second, and the other rank
  fill(sent, static_cast<std::uint64_t>(own));
  const int even = ranks + ranks % 2;
  for (int round = 0; round < even - 1; ++round) {
    const int other = partner(own, round, even);
    if (other >= ranks) continue;
    double best = 0;
    for (int i = 0; i < times; ++i) {
      const auto begin = real_clock().now();
      communicator.swap(std::as_bytes(std::span(sent)), std::as_writable_bytes(std::span(received)), other,
                        "messages of the stress test");
      best = std::max(best, bytes / seconds_since(begin));
    }
    rates.emplace_back(best, other);
    if (first_wrong(received, static_cast<std::uint64_t>(other)) < received.size())
      mine.push_back({Exit::communication,
                      fmt::format("a message from rank {} on {} came with other bits", other,
                                  communicator.hosts()[static_cast<std::size_t>(other)]),
                      {}});
  }
  std::sort(rates.begin(), rates.end());
  std::vector<double> medians(static_cast<std::size_t>(ranks), 0.0);
  medians[static_cast<std::size_t>(own)] = rates[rates.size() / 2].first;
  communicator.sum(medians, "rates of the links");
  std::sort(medians.begin(), medians.end());
  const double median = medians[medians.size() / 2];
  constexpr double slow = 0.5;
  if (const auto [rate, other] = rates.front(); ranks > 2 && rate < slow * median)
    mine.push_back(
        {Exit::ok,
         fmt::format("the link between {} and {} is slow: {:.0f} MB/s, the median is {:.0f}",
                     communicator.hosts()[static_cast<std::size_t>(std::min(own, other))],
                     communicator.hosts()[static_cast<std::size_t>(std::max(own, other))], rate / 1e6, median / 1e6),
         {}});
  share_findings(communicator, mine, to);
  std::array<double, 1> slowest{rates.front().first};
  communicator.minimum(std::span<double>(slowest), "rates of the links");
  to.facts.push_back(
      {"links",
       fmt::format("{} of ranks exchanged 1 MB each way: {:.0f} MB/s in the median, {:.0f} at the least",
                   counted(static_cast<Index>(ranks) * (ranks - 1) / 2, "pair"), median / 1e6, slowest[0] / 1e6),
       {{"median_mb_per_sec", median / 1e6}, {"slowest_mb_per_sec", slowest[0] / 1e6}}});
}

}  // namespace

void stress(Communicator& communicator, const PreflightConfig& config, Preflight& to) {
  const double seconds = config.stress_seconds;
  stress_arithmetic(communicator, config, arithmetic_share * seconds, to);
  stress_memory(communicator, config, memory_share * seconds, to);
  stress_disk(communicator, config, std::min(disk_share * seconds, most_disk_seconds), to);
  stress_links(communicator, to);
}

}  // namespace convoy
