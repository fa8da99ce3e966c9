// SPDX-License-Identifier: Apache-2.0
#include "cli/bench.hpp"
#include "core/log.hpp"
#include "core/replicas.hpp"
#include "data/loader.hpp"
#include "train/data.hpp"

namespace convoy {
namespace {

/// Touches every cache line, as a copy to a device would.
std::uint64_t touch(const Batch& batch, Index image_bytes) {
  std::uint64_t sum = 0;
  const Index bytes = image_bytes * static_cast<Index>(batch.samples.size());
  for (Index i = 0; i < bytes; i += 64) sum += batch.images[i];
  return sum;
}

}  // namespace

Exit bench_io(Communicator& communicator, const BenchConfig& config) {
  const int ranks = communicator.size(), rank = communicator.rank();
  DatasetInfo info;
  std::unique_ptr<Dataset> samples;
  OrderSpec order;
  Stopwatch load;
  const Exit code = communicator.together("loading the samples", [&] {
    info = open_split(config.data, "train");
    if (info.samples < ranks) {
      fail(Exit::usage, "{} ranks share {} images; start fewer ranks", ranks, info.samples);
    }
    order = {.samples = info.samples,
             .replicas = ranks,
             .batch = config.batch,
             .seed = 1,
             .shuffle = config.data.shuffle,
             .mode = config.data.epoch_mode};
    load.start();
    samples = load_split(config.data, info, sample_range(order, rank, 1),
                         samples_memory(config.data, communicator.node_size()));
    load.stop();
  });
  if (code != Exit::ok) return code;
  const double image_bytes = static_cast<double>(info.image_bytes());
  const auto loaded = static_cast<double>(samples->range().count);
  double sums[2] = {loaded, load.total()};
  communicator.sum(std::span<double>(sums, 1), "images loaded");
  communicator.maximum(std::span<double>(sums + 1, 1), "time of loading");
  log::info(
      "load and check: {:.0f} images in {:.3f} s, {:.0f} images/s, {:.1f} MB/s (10^6 bytes, {} ranks x {} threads)",
      sums[0], sums[1], sums[0] / sums[1], sums[0] * image_bytes / sums[1] / 1e6, ranks, config.data.workers);

  Loader loader(*samples, {.order = order,
                           .augment = augment_spec(config.data, info, 1, Use::training),
                           .first_replica = rank,
                           .replica_count = 1,
                           .workers = config.data.workers,
                           .prefetch = config.data.prefetch,
                           .resident = -1});
  communicator.barrier("start of the loader");
  Stopwatch prepare;
  Index images = 0, done = 0;
  std::uint64_t touched = 0;
  for (Index epoch = 0; done < config.warmup + config.steps; ++epoch) {
    const EpochOrder& steps = loader.begin_epoch(epoch, 0);
    for (Index step = 0; step < steps.steps() && done < config.warmup + config.steps; ++step, ++done) {
      if (steps.count(step, rank) == 0) continue;
      const bool timed = done >= config.warmup;
      if (timed) prepare.start();
      touched += touch(loader.next(step, rank), info.image_bytes());
      if (timed) prepare.stop();
      if (timed) images += steps.count(step, rank);
    }
  }
  double total[2] = {static_cast<double>(images), prepare.total()};
  communicator.sum(std::span<double>(total, 1), "images prepared");
  communicator.maximum(std::span<double>(total + 1, 1), "time of preparing");
  log::debug("sum of the bytes touched: {}", touched);
  log::info("prepare batches: {:.0f} images in {:.3f} s, {:.0f} images/s, {:.1f} MB/s (batch {}, {} ahead)", total[0],
            total[1], total[0] / total[1], total[0] * image_bytes / total[1] / 1e6, config.batch, config.data.prefetch);
  return Exit::ok;
}

}  // namespace convoy
