// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cli/bench.hpp"
#include "comm/agreed_error.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/replicas.hpp"
#include "core/text.hpp"
#include "data/image_maker.hpp"
#include "data/loader.hpp"
#include "engine/data.hpp"
#include "engine/shared_data.hpp"

namespace convoy {
namespace {

constexpr double probe_seconds = 0.5;
constexpr double mega = 1e6;

/// Touches every cache line, as a copy to a device would.
std::uint64_t touch(const Batch& batch, Index image_bytes) {
  std::uint64_t sum = 0;
  const Index bytes = image_bytes * static_cast<Index>(batch.samples.size());
  for (Index i = 0; i < bytes; i += 64) sum += batch.images[i];
  return sum;
}

/// What the loader's threads do for an image, each part alone on one core: seconds. A read may wait for a disk; the
/// others' seconds are the core's, which other programs don't lengthen.
struct Parts {
  double read = 0;  ///< from its file and checked; or only found, where samples were checked when they were loaded
  double make = 0;  ///< decode, crop, resize, change; or copy, where pixels are taken as they are
  double copy = 0;  ///< of the finished image into memory that is in no cache
};

/// Times of a call, in seconds.
struct Each {
  double wall = 0, cpu = 0;
};

/// Calls `body` with 0, 1, ... until the time is up.
template <class Body>
Each each(const Body& body) {
  const auto begin = real_clock().now();
  const double cpu = cpu_seconds(CpuTime::thread);
  Index done = 0;
  double seconds = 0;
  while (seconds < probe_seconds) {
    body(done++);
    seconds = seconds_since(begin);
  }
  const auto calls = static_cast<double>(done);
  return {seconds / calls, (cpu_seconds(CpuTime::thread) - cpu) / calls};
}

Parts probe(const Dataset& samples, const AugmentSpec& augment, const EpochOrder& order, int replica) {
  const Range range = samples.range();
  const Index bytes = SampleImages::image_bytes(samples, augment),
              most = std::min<Index>(range.count, order.count(0, replica));
  const auto sample = [&](Index i) { return order.sample(0, replica, i % most); };
  std::vector<std::uint8_t> scratch, image(static_cast<std::size_t>(bytes));
  SampleImages images(samples, augment);
  Parts parts;
  std::uint64_t sum = 0;
  const Each read = each([&](Index i) {
    std::string fault;
    const auto stored = samples.stored(sample(i), scratch, fault);
    for (std::size_t b = 0; b < stored.size(); b += 64) sum += stored[b];
  });
  const Each both = each([&](Index i) { images.put(sample(i), 0, i, image.data()); });
  parts.read = read.wall;
  parts.make = std::max(both.cpu - read.cpu, 0.0);
  constexpr std::size_t beyond_caches = std::size_t{256} << 20;
  const std::size_t rows = std::max<std::size_t>(beyond_caches / std::max<std::size_t>(image.size(), 1), 1);
  std::vector<std::uint8_t> memory(rows * image.size());
  parts.copy =
      each([&](Index i) {
        std::memcpy(memory.data() + static_cast<std::size_t>(i) % rows * image.size(), image.data(), image.size());
      }).cpu;
  log::debug("sum of the bytes read: {}", sum);
  return parts;
}

/// The part that takes most of a core's time for an image.
std::string limit_of(const Parts& parts, const Dataset& samples, const AugmentSpec& augment) {
  const double sum = parts.read + parts.make + parts.copy, most = std::max({parts.read, parts.make, parts.copy});
  const char* name = "memory";
  if (most == parts.make && augment.on_host()) name = augment.stored == Stored::files ? "decode" : "resize";
  if (most == parts.read && samples.images() == nullptr) name = "disk";
  return fmt::format("{} ({:.0f} % of the time that an image takes)", name, 100 * most / sum);
}

}  // namespace

Exit bench_io(Communicator& communicator, const BenchConfig& config) {
  const int ranks = communicator.size(), rank = communicator.rank();
  const auto patient = patient_ranks(communicator, config.deadline);
  const DatasetInfo info = open_shared_split(*patient, config.data, "train");
  std::unique_ptr<Dataset> samples;
  OrderSpec order;
  AugmentSpec augment;
  Stopwatch load;
  run_agreed(*patient, "loading the samples", [&] {
    if (info.samples < ranks) {
      fail(Exit::usage, "{} ranks share {} images; start fewer ranks", ranks, info.samples);
    }
    augment = augment_spec(config.data, info, 1, Use::training);
    order = {.samples = info.samples,
             .replicas = ranks,
             .batch = config.batch,
             .seed = 1,
             .shuffle = config.data.shuffle,
             .mode = config.data.epoch_mode,
             .buffer = config.data.shuffle_buffer};
    load.start();
    samples = load_split(config.data, info, sample_range(order, rank, 1),
                         samples_memory(config.data, communicator.node_size()));
    load.stop();
  });
  const double stored_bytes =
      static_cast<double>(samples_bytes(info, {0, info.samples})) / static_cast<double>(info.samples);
  const Index image_bytes = SampleImages::image_bytes(*samples, augment);
  const auto loaded = static_cast<double>(samples->range().count);
  double sums[2] = {loaded, load.total()};
  communicator.sum(std::span<double>(sums, 1), "images loaded");
  communicator.maximum(std::span<double>(sums + 1, 1), "time of loading");
  if (samples->in_memory()) {
    log::info("{}: {:.0f} images in {:.3f} s, {:.0f} images/s, {:.1f} MB/s (10^6 bytes, {} x {})",
              config.data.synthetic ? "make samples" : "load and check", sums[0], sums[1], sums[0] / sums[1],
              sums[0] * stored_bytes / sums[1] / mega, counted(ranks, "rank"), counted(config.data.workers, "thread"));
  } else {
    log::info("open: tables of {:.0f} images in {:.3f} s; the images are read and checked when they are used", sums[0],
              sums[1]);
  }

  if (const Index least = 4 * Index{config.data.prefetch}; config.steps < least && rank == 0)
    log::warn("the loader prepares {} batches ahead, so the rate of {} may be too high; use --steps {} or more",
              config.data.prefetch, counted(config.steps, "step"), least);
  const LoaderSpec spec{.order = order,
                        .augment = augment,
                        .first_replica = rank,
                        .replica_count = 1,
                        .workers = config.data.workers,
                        .prefetch = config.data.prefetch,
                        .resident = -1};
  Loader loader(*samples, spec);
  communicator.barrier("start of the loader");
  Stopwatch prepare;
  Index images = 0, done = 0;
  std::uint64_t touched = 0;
  double cpu = cpu_seconds(CpuTime::process);
  for (Index epoch = 0; done < config.warmup + config.steps; ++epoch) {
    const EpochOrder& steps = loader.begin_epoch(epoch, 0);
    for (Index step = 0; step < steps.steps() && done < config.warmup + config.steps; ++step, ++done) {
      if (steps.count(step, rank) == 0) continue;
      const bool timed = done >= config.warmup;
      if (done == config.warmup) cpu = cpu_seconds(CpuTime::process);
      if (timed) prepare.start();
      touched += touch(loader.next(step, rank), image_bytes);
      if (timed) prepare.stop();
      if (timed) images += steps.count(step, rank);
    }
  }
  cpu = cpu_seconds(CpuTime::process) - cpu;
  double total[3] = {static_cast<double>(images), cpu, prepare.total()};
  communicator.sum(std::span<double>(total, 2), "images prepared");
  communicator.maximum(std::span<double>(total + 2, 1), "time of preparing");
  log::debug("sum of the bytes touched: {}", touched);
  log::info(
      "prepare batches: {:.0f} images in {:.3f} s, {:.0f} images/s, {:.1f} MB/s read, {:.1f} MB/s made (batch {}, {} ahead)",
      total[0], total[2], total[0] / total[2], total[0] * stored_bytes / total[2] / mega,
      total[0] * static_cast<double>(image_bytes) / total[2] / mega, config.batch, config.data.prefetch);
  log::info("per core: {:.0f} images/s (by {:.2f} s of CPU time)", total[0] / std::max(total[1], 1e-9), total[1]);
  const Parts parts = probe(*samples, augment, EpochOrder(order, 0, rank, 1), rank);
  log::info("one thread alone: {} {:.0f} images/s, {:.1f} MB/s; make {:.0f} images/s; copy {:.0f} images/s",
            samples->in_memory() ? "take from memory" : "read and check", 1 / std::max(parts.read, 1e-9),
            stored_bytes / std::max(parts.read, 1e-9) / mega, 1 / std::max(parts.make, 1e-9),
            1 / std::max(parts.copy, 1e-9));
  log::info("limit: {}", limit_of(parts, *samples, augment));
  log::info("memory per rank: {:.1f} MB of samples, {:.1f} MB of batches",
            static_cast<double>(samples->memory_bytes()) / mega,
            static_cast<double>(Loader::memory_bytes(*samples, spec)) / mega);
  return Exit::ok;
}

}  // namespace convoy
