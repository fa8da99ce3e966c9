// SPDX-License-Identifier: Apache-2.0
#include "run/supervisor.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/stop.hpp"
#include "core/wall_clock.hpp"
#include "run/heartbeats.hpp"
#include "run/rank_liveness.hpp"
#include "run/watchdog.hpp"

namespace convoy {
namespace {

constexpr auto tick = std::chrono::milliseconds(200);

double shortest_of(const StallLimits& deadline) {
  const double warn = deadline.warn_seconds, abort = deadline.abort_seconds;
  return warn > 0 && abort > 0 ? std::min(warn, abort) : std::max(warn, abort);
}

/// One thread, which touches files, and so may hang in a dead file system: nobody waits for it without a limit.
class Watch {
 public:
  Watch(const Communicator& communicator, const StallLimits& deadline, std::string start);
  void run();
  void write_to(const std::string& folder);
  StallReport explain();
  void end();
  const std::string& start() const { return start_; }

 private:
  void observe(Instant now);
  void write(Instant now);
  void look_around(Instant now);
  bool reads_now() const;

  // Constant.
  const std::vector<std::string> hosts_;
  const int rank_, ranks_, node_first_, slot_;
  const std::string start_, local_folder_;
  double period_ = 2, look_after_ = 10, abort_seconds_ = 0;

  std::mutex guard_;  ///< of what both threads touch; never held during a call to the file system
  std::condition_variable changed_;
  std::string folder_;
  bool ending_ = false, ended_ = false;
  std::vector<RankLiveness> seen_;
  Instant seen_at_;

  // Of the thread alone.
  Heartbeat beat_;
  std::string written_folder_, path_;
  bool created_ = false;
  int failures_ = 0;
  std::uint64_t marks_ = 0, waits_ = 0;
  Instant moved_, wait_began_, written_, looked_;
  bool waiting_ = false;
  std::vector<Heartbeat> found_;
  std::vector<Instant> changed_at_;
};

Watch::Watch(const Communicator& communicator, const StallLimits& deadline, std::string start)
    : hosts_(communicator.hosts()),
      rank_(communicator.rank()),
      ranks_(communicator.size()),
      node_first_(communicator.node_first()),
      slot_(communicator.node_rank()),
      start_(std::move(start)),
      local_folder_(fmt::format("/dev/shm/convoy-{}", getuid())),
      abort_seconds_(deadline.abort_seconds),
      folder_(local_folder_) {
  const double shortest = shortest_of(deadline);
  const auto nodes = static_cast<double>(std::set<std::string>(hosts_.begin(), hosts_.end()).size());
  constexpr double usual_period = 2, longest_period = 15, looks = 8, seconds_a_node = 0.03;
  if (shortest > 0) period_ = std::clamp(shortest / looks, 0.2, usual_period);
  period_ = std::clamp(nodes * seconds_a_node, period_, longest_period);
  look_after_ = shortest > 0 ? std::min(shortest / looks, 10.0) : 10;
  beat_.rank = rank_;
  beat_.ranks = ranks_;
  beat_.host = communicator.host();
  beat_.pid = getpid();
  beat_.period = period_;
  moved_ = wait_began_ = real_clock().now();
  changed_at_.assign(static_cast<std::size_t>(ranks_), moved_);
}

void Watch::run() {
  std::unique_lock lock(guard_);
  for (;;) {
    const bool last = ending_;
    const std::string folder = folder_;
    lock.unlock();
    if (folder != written_folder_) {
      written_folder_ = folder;
      path_ = heartbeat_path({folder, start_, node_first_, slot_});
      created_ = false;
      failures_ = 0;
      written_ = {};
    }
    const auto now = real_clock().now();
    observe(now);
    if (reads_now() && seconds_between(looked_, now) >= period_) look_around(now);
    lock.lock();
    if (last) break;
    changed_.wait_for(lock, tick, [&] { return ending_; });
  }
  ended_ = true;
  changed_.notify_all();
}

void Watch::observe(Instant now) {
  const ProgressSnapshot at = progress().read();
  if (at.marks != marks_) moved_ = now;
  if (at.waits != waits_ || !at.waiting) wait_began_ = now;
  marks_ = at.marks;
  waits_ = at.waits;
  waiting_ = at.waiting;
  const bool news = at.exit != beat_.exit || stop_signal() != beat_.signal;
  if (!news && seconds_between(written_, now) < period_) return;
  beat_.phase = name_of(at.activity);
  beat_.epoch = at.epoch;
  beat_.step = at.step;
  beat_.operation = at.operation.data();
  beat_.waiting = waiting_ ? seconds_between(wait_began_, now) : -1;
  beat_.quiet = seconds_between(moved_, now);
  beat_.signal = stop_signal();
  beat_.exit = at.exit;
  write(now);
}

void Watch::write(Instant now) {
  written_ = now;
  ++beat_.count;
  beat_.time = wall_seconds();
  if (write_heartbeat(path_, slot_, beat_, created_ ? IfMissing::leave : IfMissing::create)) {
    created_ = true;
    failures_ = 0;
    return;
  }
  // A new folder may take a moment to show on other hosts.
  constexpr int tolerated = 3;
  if (++failures_ != tolerated || written_folder_ == local_folder_) return;
  if (rank_ == 0)
    log::warn(
        "heartbeats can't be written to '{}'; the run goes on, but ranks of other hosts can't be told from dead ones",
        written_folder_);
  const std::lock_guard lock(guard_);
  if (folder_ == written_folder_) folder_ = local_folder_;
}

/// On a large job not every rank reads every file: the lowest ones, and all before the end.
bool Watch::reads_now() const {
  constexpr int early_readers = 32;
  if (!waiting_ || ranks_ == 1) return false;
  const double waited = seconds_since(wait_began_);
  return waited >= (rank_ < early_readers || abort_seconds_ <= 0 ? look_after_ : 0.75 * abort_seconds_);
}

void Watch::look_around(Instant now) {
  const bool first = seconds_between(looked_, now) > 4 * period_ + 1;
  looked_ = now;
  read_heartbeats(written_folder_, start_, found_);
  const auto read_at = real_clock().now();
  const std::lock_guard lock(guard_);
  seen_at_ = read_at;
  seen_.resize(static_cast<std::size_t>(ranks_));
  for (const Heartbeat& beat : found_) {
    if (beat.rank < 0 || beat.rank >= ranks_) continue;
    RankLiveness& seen = seen_[static_cast<std::size_t>(beat.rank)];
    auto& changed = changed_at_[static_cast<std::size_t>(beat.rank)];
    if (first || !seen.known || seen.heartbeat.count != beat.count) changed = read_at;
    seen = {true, beat, seconds_between(changed, read_at)};
  }
}

StallReport Watch::explain() {
  const std::lock_guard lock(guard_);
  if (seen_.empty()) return {.missing = {}, .speaker = rank_ == 0};
  const StallReport roll = find_missing(seen_, hosts_, rank_);
  StallReport report{.missing = roll.missing, .speaker = roll.missing.empty() ? rank_ == 0 : roll.speaker};
  const double age = seconds_since(seen_at_);
  if (age > 4 * period_ + 2) report.missing += fmt::format("; heartbeats could not be read for {:.0f} s", age);
  return report;
}

void Watch::write_to(const std::string& folder) {
  const std::string local = heartbeat_path({local_folder_, start_, node_first_, slot_});
  const std::lock_guard lock(guard_);
  folder_ = folder;
  if (slot_ == 0) ::unlink(local.c_str());
}

void Watch::end() {
  std::unique_lock lock(guard_);
  ending_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, std::chrono::seconds(1), [&] { return ended_; });
  if (slot_ == 0 && folder_ == local_folder_)
    ::unlink(heartbeat_path({local_folder_, start_, node_first_, slot_}).c_str());
}

/// Files that killed jobs left in the memory of this host.
void remove_dead(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    std::vector<Heartbeat> beats;
    read_heartbeats(folder, name.substr(0, name.rfind('-')), beats);
    const bool alive = std::any_of(beats.begin(), beats.end(), [](const Heartbeat& beat) {
      return ::kill(static_cast<pid_t>(beat.pid), 0) == 0 || errno != ESRCH;
    });
    std::error_code ignored;
    if (!beats.empty() && !alive) fs::remove(at->path(), ignored);
  }
}

std::shared_ptr<Watch>& running() {
  static std::shared_ptr<Watch> instance;
  return instance;
}

std::string name_of_start() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%S", &parts);
  return fmt::format("{}-{:07d}", text.data(), getpid());
}

}  // namespace

void start_watch(Communicator& communicator, const StallLimits& deadline) {
  start_watchdog(
      {.seconds = deadline.watchdog_seconds,
       .warn_seconds = deadline.warn_seconds,
       .speaker = fmt::format("[rank {}/{} {}] ", communicator.rank(), communicator.size(), communicator.host())});
  std::string start = name_of_start();
  communicator.broadcast(start, "name of this start");
  auto watch = std::make_shared<Watch>(communicator, deadline, start);
  const std::string local = fmt::format("/dev/shm/convoy-{}", getuid());
  if (communicator.node_rank() == 0) {
    ::mkdir(local.c_str(), 0700);
    remove_dead(local);
  }
  running() = watch;
  communicator.explain_stalls([watch] { return watch->explain(); });
  std::thread([watch] { watch->run(); }).detach();
}

void write_heartbeats_to(Communicator& communicator, const std::string& folder) {
  if (!running()) return;
  const std::string own = folder + "/heartbeats";
  std::array<std::int64_t, 1> made{0};
  if (communicator.rank() == 0) {
    std::error_code failed;
    std::filesystem::create_directories(own, failed);
    made[0] = failed ? 0 : 1;
    if (made[0] == 1) remove_old_heartbeats(own, running()->start());
    if (failed) log::warn("cannot make '{}' ({}); the run goes on without heartbeats there", own, failed.message());
  }
  communicator.maximum(made, "state of the heartbeats");
  if (made[0] == 1) running()->write_to(own);
}

void end_watch(Exit code) {
  if (!running()) return;
  if (code == Exit::ok || code == Exit::stopped) progress().enter(Activity::ending);
  progress().leave(static_cast<int>(code));
  running()->end();
}

}  // namespace convoy
