// SPDX-License-Identifier: Apache-2.0
#include "preprocess/spill/spiller.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/errors.hpp"
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
  std::size_t bytes = 0;    ///< to come, as far as is known when an image is read
  std::size_t pending = 0;  ///< images read and not yet processed
  bool closed = false;      ///< no image will follow
};

struct Job {
  RawImage raw;
  Pool pool = Pool::train;
  Index unit = 0;
  std::shared_ptr<Segment> segment;
};

}  // namespace

struct Spiller::State {
  Spec spec;
  std::vector<OpenPool>& pools;
  std::mutex guard;
  std::condition_variable room, work;  ///< for the reader; for the others
  std::deque<Job> queue;
  std::size_t queued_bytes = 0;
  int segments_alive = 0;
  bool reading = true;
  std::exception_ptr error;
  std::atomic<bool> stopping{false}, failed{false};
  std::atomic<int> running{0};
  std::atomic<std::int64_t> images{0}, bytes{0}, weight{0};
  std::vector<std::thread> threads;

  State(Spec s, std::vector<OpenPool>& p) : spec(std::move(s)), pools(p) {}

  void fail_with(std::exception_ptr reason) {
    const std::lock_guard lock(guard);
    if (!error) error = std::move(reason);
    failed = true;
    stopping = true;
    queue.clear();
    room.notify_all();
    work.notify_all();
  }

  std::size_t segment_bytes() const { return static_cast<std::size_t>(spec.images->memory_bytes) / 2; }

  /// What an image will take: exact for raw pixels, for files a good guess.
  std::size_t expected_bytes(const RawImage& raw) const {
    const Recipe& recipe = spec.images->recipe;
    if (recipe.encoding == Encoding::jpeg) return raw.bytes.size() * recipe.sizes.size();
    std::size_t sum = 0;
    for (const Index side : recipe.sizes) {
      sum += static_cast<std::size_t>(side * side * channel_count(recipe.channels));
    }
    return sum;
  }

  std::shared_ptr<Segment> begin_segment(const Piece& at) {
    std::unique_lock lock(guard);
    room.wait(lock, [&] { return segments_alive < 2 || failed; });  // one being filled, one being written
    ++segments_alive;
    auto segment = std::make_shared<Segment>(spec.images->recipe.sizes.size(), spec.images->recipe.seed);
    segment->path = fmt::format("{}/{:07}-{}.run", spec.folder, at.unit, at.to < 0 ? "start" : std::to_string(at.to));
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

  void read_units() {
    std::shared_ptr<Segment> segment;
    for (const Assignment& at : spec.assignments) {
      if (stopping) break;
      const Unit& unit = (*spec.units)[static_cast<std::size_t>(at.unit)];
      const auto reader = open(unit, at.from);
      if (!reader) break;
      Piece piece{at.unit, at.from, at.from, false};
      const std::int64_t weight_before = weight, bytes_before = bytes;
      while (!piece.done && !stopping) {
        if (!segment) segment = begin_segment(piece);
        if (!read_image(*reader, unit, segment, piece)) break;
        weight = weight_before + (piece.done ? at.left : std::min<std::int64_t>(bytes - bytes_before, at.left));
        if (segment->bytes < segment_bytes()) continue;
        finish_piece(*segment, piece);
        close(segment);
        segment.reset();
        piece.from = piece.to;
      }
      if (segment) finish_piece(*segment, piece);
    }
    if (segment) close(segment);
  }

  /// Null where the wait for its beginning was broken off.
  std::unique_ptr<UnitReader> open(const Unit& unit, Index from) {
    try {
      return open_unit(*spec.images, pool_of(unit), unit, from);
    } catch (const Error& e) {
      if (e.code() != Exit::stopped) throw;
      stopping = true;
      return nullptr;
    }
  }

  OpenPool& pool_of(const Unit& unit) {
    for (OpenPool& pool : pools) {
      if (pool.source.pool == unit.pool) return pool;
    }
    fail(Exit::internal, "a unit of no pool");
  }

  /// The next image, or the end of the unit. False where the wait for it was broken off.
  bool read_image(UnitReader& reader, const Unit& unit, const std::shared_ptr<Segment>& segment, Piece& piece) {
    Job job;
    try {
      piece.done = !reader.next(job.raw);
    } catch (const Error& e) {
      if (e.code() != Exit::stopped) throw;
      stopping = true;
      return false;
    }
    if (piece.done) return true;
    piece.to = job.raw.next;
    ++images;
    bytes += static_cast<std::int64_t>(job.raw.bytes.size());
    segment->bytes += expected_bytes(job.raw);
    job.pool = unit.pool;
    job.unit = piece.unit;
    job.segment = segment;
    push(std::move(job));
    return true;
  }

  void finish_piece(Segment& segment, const Piece& piece) {
    const std::lock_guard lock(guard);
    if (piece.to != piece.from || piece.done) segment.run.add_piece(piece);
  }

  void read() {
    try {
      read_units();
    } catch (...) {
      fail_with(std::current_exception());
    }
    const std::lock_guard lock(guard);
    reading = false;
    work.notify_all();
  }

  void process() {
    Processor processor(spec.images->recipe);
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
      bool complete = false;
      {
        const std::lock_guard lock(guard);
        Segment& segment = *job.segment;
        segment.run.count_read();
        segment.run.add_notes(done.notes);
        if (done.kept) segment.run.add(job.raw, done, job.pool, job.unit);
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

Spiller::Spiller(Spec spec, std::vector<OpenPool>& pools) : state_(std::make_unique<State>(std::move(spec), pools)) {
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
SpillProgress Spiller::progress() const { return {state_->images, state_->bytes, state_->weight}; }
void Spiller::stop() { state_->stopping = true; }

void Spiller::join() {
  for (auto& thread : state_->threads) {
    if (thread.joinable()) thread.join();
  }
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace convoy::preparation
