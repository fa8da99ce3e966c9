// SPDX-License-Identifier: Apache-2.0
#include "preprocess/spill/spiller.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/errors.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/spill/run_file.hpp"

namespace convoy::preparation {
namespace {

constexpr std::size_t most_queued_bytes = std::size_t{64} << 20;
constexpr std::size_t most_queued_images = 256;

/// A run in the making.
struct Segment {
  Segment(std::size_t sizes, std::uint64_t seed) : run(sizes, seed) {}
  RunWriter run;
  std::string path;
  std::size_t bytes = 0;    ///< expected bytes, as far as known when an image is read
  std::size_t pending = 0;  ///< images read and not yet processed
  bool closed = false;      ///< no image will follow
};

struct Job {
  RawSample raw;
  Split split = Split::train;
  Index shard = 0;
  std::shared_ptr<Segment> segment;
};

}  // namespace

struct Spiller::State {
  Spec spec;
  std::vector<OpenSplit>& splits;
  std::mutex guard;
  std::condition_variable room, work;  ///< the reader waits for `room`, the others for `work`
  std::deque<Job> queue;
  std::size_t queued_bytes = 0;
  int segments_alive = 0;
  bool reading = true;
  std::exception_ptr error;
  std::atomic<bool> stopping{false}, failed{false};
  std::atomic<int> running{0};
  std::atomic<std::int64_t> bytes{0}, weight{0};                  ///< read
  std::atomic<std::int64_t> decoded_images{0}, decoded_bytes{0};  ///< of those: looked at, and stored or left out
  std::vector<std::thread> threads;

  State(Spec s, std::vector<OpenSplit>& p) : spec(std::move(s)), splits(p) {}

  void fail_with(std::exception_ptr reason) {
    const std::lock_guard lock(guard);
    if (!error) error = std::move(reason);
    failed = true;
    stopping = true;
    queue.clear();
    room.notify_all();
    work.notify_all();
  }

  std::size_t segment_bytes() const { return static_cast<std::size_t>(spec.prepare->memory_bytes) / 2; }

  /// What an image will take: exact for raw pixels, for files a good guess.
  std::size_t expected_bytes(const RawSample& raw) const {
    const Recipe& recipe = spec.prepare->recipe;
    if (recipe.encoding == Encoding::jpeg) return raw.bytes.size() * recipe.sizes.size();
    std::size_t sum = 0;
    for (std::size_t s = 0; s < recipe.sizes.size(); ++s)
      sum += static_cast<std::size_t>(recipe.stored_shape(s).bytes());
    return sum;
  }

  std::shared_ptr<Segment> begin_segment(const Slice& at) {
    std::unique_lock lock(guard);
    room.wait(lock, [&] { return segments_alive < 2 || failed; });  // one being filled, one being written
    ++segments_alive;
    auto segment = std::make_shared<Segment>(spec.prepare->recipe.sizes.size(), spec.prepare->recipe.seed);
    segment->path = fmt::format("{}/{:07}-{}.run", spec.folder, at.shard, at.to < 0 ? "start" : std::to_string(at.to));
    return segment;
  }

  /// The reader's last word on a segment; writes it if nobody else will.
  void close(const std::shared_ptr<Segment>& segment) {
    {
      const std::lock_guard lock(guard);
      segment->closed = true;
      if (segment->pending > 0 || failed) return;
    }
    write(*segment);
  }

  void write(Segment& segment) {
    if (!segment.run.empty()) segment.run.write(segment.path);
    const std::lock_guard lock(guard);
    --segments_alive;
    room.notify_all();
  }

  void push(Job job) {
    std::unique_lock lock(guard);
    const std::size_t size = job.raw.bytes.size();
    room.wait(lock, [&] {
      return failed || queue.empty() || (queued_bytes + size <= most_queued_bytes && queue.size() < most_queued_images);
    });
    if (failed) return;
    queued_bytes += size;
    ++job.segment->pending;
    queue.push_back(std::move(job));
    work.notify_one();
  }

  void read_shards() {
    std::shared_ptr<Segment> segment;
    for (const PendingShard& at : spec.pending) {
      if (stopping) break;
      const Shard& shard = (*spec.shards)[static_cast<std::size_t>(at.shard)];
      const auto reader = open(shard, at.from);
      if (!reader) break;
      Slice slice{at.shard, at.from, at.from, false};
      const std::int64_t weight_before = weight, bytes_before = bytes;
      while (!slice.done && !stopping) {
        if (!segment) segment = begin_segment(slice);
        if (!read_image(*reader, shard, segment, slice)) break;
        weight = weight_before + (slice.done ? at.left : std::min<std::int64_t>(bytes - bytes_before, at.left));
        if (segment->bytes < segment_bytes()) continue;
        finish_slice(*segment, slice);
        close(segment);
        segment.reset();
        slice.from = slice.to;
      }
      if (segment) finish_slice(*segment, slice);
    }
    if (segment) close(segment);
  }

  /// Null where the wait for its beginning was broken off.
  std::unique_ptr<SampleReader> open(const Shard& shard, Index from) {
    try {
      return spec.prepare->kind->open(*spec.prepare, split_of(shard), shard, from);
    } catch (const Error& e) {
      if (e.code() != Exit::stopped) throw;
      stopping = true;
      return nullptr;
    }
  }

  OpenSplit& split_of(const Shard& shard) {
    for (OpenSplit& split : splits) {
      if (split.source.split == shard.split) return split;
    }
    fail(Exit::internal, "a shard of no split");
  }

  /// The next image, or the end of the shard. False where the wait for it was broken off.
  bool read_image(SampleReader& reader, const Shard& shard, const std::shared_ptr<Segment>& segment, Slice& slice) {
    Job job;
    try {
      slice.done = !reader.next(job.raw);
    } catch (const Error& e) {
      if (e.code() != Exit::stopped) throw;
      stopping = true;
      return false;
    }
    if (slice.done) return true;
    slice.to = job.raw.next;
    bytes += static_cast<std::int64_t>(job.raw.bytes.size());
    segment->bytes += expected_bytes(job.raw);
    job.split = shard.split;
    job.shard = slice.shard;
    job.segment = segment;
    push(std::move(job));
    return true;
  }

  void finish_slice(Segment& segment, const Slice& slice) {
    const std::lock_guard lock(guard);
    if (slice.to != slice.from || slice.done) segment.run.add_slice(slice);
  }

  void read() {
    try {
      read_shards();
    } catch (...) {
      fail_with(std::current_exception());
    }
    const std::lock_guard lock(guard);
    reading = false;
    work.notify_all();
  }

  void process() {
    Processor processor(spec.prepare->recipe);
    ProcessedImage done;
    while (true) {
      Job job;
      {
        std::unique_lock lock(guard);
        work.wait(lock, [&] { return !queue.empty() || !reading || failed; });
        if (failed || queue.empty()) return;
        job = std::move(queue.front());
        queue.pop_front();
        queued_bytes -= job.raw.bytes.size();
        room.notify_all();
      }
      processor.process(job.raw, done);
      ++decoded_images;
      decoded_bytes += static_cast<std::int64_t>(job.raw.bytes.size());
      bool complete = false;
      {
        const std::lock_guard lock(guard);
        Segment& segment = *job.segment;
        segment.run.count_read();
        segment.run.add_notes(done.notes);
        if (done.kept) segment.run.add(job.raw, done, job.split, job.shard);
        complete = --segment.pending == 0 && segment.closed;
      }
      if (complete) write(*job.segment);
    }
  }

  void start() {
    running = 1 + spec.threads;
    threads.emplace_back([this] {
      read();
      --running;
    });
    for (int i = 0; i < spec.threads; ++i) {
      threads.emplace_back([this] {
        try {
          process();
        } catch (...) {
          fail_with(std::current_exception());
        }
        --running;
      });
    }
  }
};

Spiller::Spiller(Spec spec, std::vector<OpenSplit>& splits) : state_(std::make_unique<State>(std::move(spec), splits)) {
  state_->start();
}

Spiller::~Spiller() {
  state_->stopping = true;
  for (auto& thread : state_->threads) {
    if (thread.joinable()) thread.join();
  }
}

bool Spiller::finished() const { return state_->running == 0; }
bool Spiller::failed() const { return state_->failed; }
SpillProgress Spiller::progress() const {
  // What waits to be decoded is not done yet.
  const std::int64_t decoded = state_->decoded_bytes, read = state_->bytes, weight = state_->weight;
  const double share = read > 0 ? static_cast<double>(decoded) / static_cast<double>(read) : 1;
  return {state_->decoded_images, decoded, std::llround(static_cast<double>(weight) * std::min(share, 1.0))};
}
void Spiller::stop() { state_->stopping = true; }

void Spiller::join() {
  for (auto& thread : state_->threads) {
    if (thread.joinable()) thread.join();
  }
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace convoy::preparation
