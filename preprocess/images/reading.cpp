// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/reading.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "preprocess/agree.hpp"

namespace convoy::preparation {
namespace {

std::string duration_text(double seconds) {
  const auto s = std::lround(seconds);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

/// Tells from time to time how far all ranks have come.
class Progress {
 public:
  Progress(double log_seconds, Index weight) : log_seconds_(log_seconds), weight_(weight) {}

  void show(const SpillProgress& all) {
    const double seconds = seconds_since(begin_);
    if (all.images == 0 || seconds < 0.5) return;
    const double done = weight_ > 0 ? static_cast<double>(all.weight) / static_cast<double>(weight_) : 1;
    std::string text =
        fmt::format("reading: {} images, {:.0f} %, {:.0f} images/s, {:.1f} MB/s", all.images, 100 * done,
                    static_cast<double>(all.images) / seconds, static_cast<double>(all.bytes) / seconds / 1e6);
    if (done > 0.005) text += fmt::format(", {} left", duration_text(seconds / done * (1 - done)));
    if (log::shows_progress()) {
      log::progress(text);
    } else if (seconds >= next_) {
      log::info("{}", text);
      next_ = seconds + log_seconds_;
    }
  }

 private:
  Instant begin_ = real_clock().now();
  double log_seconds_, next_ = log_seconds_;
  Index weight_;
};

}  // namespace

void read_images(Communicator& comm, const PrepareSpec& spec, std::vector<OpenSplit>& splits,
                 const std::vector<Shard>& shards, const std::vector<PendingShard>& left, const std::string& folder,
                 std::atomic<bool>& cancel) {
  std::vector<Index> weights;
  Index weight = 0;
  for (const PendingShard& a : left) {
    weights.push_back(a.left);
    weight += a.left;
  }
  const auto owners = deal_shards(shards, weights, comm.size());
  Spiller::Spec work{&spec, &shards, {}, folder, std::max(spec.threads, 1)};
  for (std::size_t u = 0; u < shards.size(); ++u) {
    if (owners[u] == comm.rank() && left[u].left > 0) work.pending.push_back(left[u]);
  }
  Spiller spiller(std::move(work), splits);
  Progress progress(spec.log_seconds, weight);
  enum Sum : std::size_t { images, bytes, read_weight, finished, failed, stopped, sums };
  // All ranks meet after each nap, and none of them works on this thread. Short ones at first, for small jobs, and at
  // the end. Those that have finished sleep as long as the others: waiting in MPI takes time from ranks on the same
  // core.
  constexpr double shortest_nap = 0.01, longest_nap = 0.5, share_of_time = 0.04, share_of_rest = 0.25;
  const auto start = real_clock().now();
  for (double nap = shortest_nap;;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(nap));
    const SpillProgress own = spiller.progress();
    std::array<std::int64_t, sums> all{};
    all[images] = own.images;
    all[bytes] = own.bytes;
    all[read_weight] = own.weight;
    all[finished] = spiller.finished() ? 1 : 0;
    all[failed] = spiller.failed() ? 1 : 0;
    all[stopped] = stop_reason() != StopReason::none ? 1 : 0;
    comm.sum(all, "progress of reading");
    if (comm.rank() == 0) progress.show({all[images], all[bytes], all[read_weight]});
    if (all[failed] > 0 || all[stopped] > 0) {
      spiller.stop();
      cancel = true;
    }
    if (all[finished] == comm.size()) break;
    const double seconds = seconds_since(start),
                 done = static_cast<double>(all[read_weight]) / static_cast<double>(std::max<Index>(weight, 1)),
                 rest = done > 0 ? seconds * (1 - done) / done : seconds;
    nap = std::clamp(std::min(seconds * share_of_time, rest * share_of_rest), shortest_nap, longest_nap);
  }
  agree(comm, "reading images", [&] {
    spiller.join();
    leave_if_stopped("reading images");
  });
}

}  // namespace convoy::preparation
