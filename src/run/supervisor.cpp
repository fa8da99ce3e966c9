// SPDX-License-Identifier: Apache-2.0
#include "run/supervisor.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <thread>

#include "core/log.hpp"
#include "core/progress.hpp"
#include "run/liveness_monitor.hpp"
#include "run/watchdog.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;

constexpr auto tick = std::chrono::milliseconds(100);
constexpr auto last_state = std::chrono::seconds(5), last_heartbeat = std::chrono::seconds(1);

std::string local_folder() { return fmt::format("/dev/shm/convoy-{}", getuid()); }

std::string name_of_start() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%S", &parts);
  return fmt::format("{}-{:07d}", text.data(), getpid());
}

/// Collective.
std::string agreed_start(Communicator& communicator) {
  std::string start = name_of_start();
  communicator.broadcast(start, "name of this start");
  return start;
}

/// Removes files that killed jobs left in the memory of this host.
void remove_dead(const std::string& folder) {
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

}  // namespace

/// The thread that touches files. Nobody waits for it without a limit.
struct Supervisor::Worker {
  explicit Worker(LivenessSpec spec) : monitor(std::move(spec), progress(), real_clock()) {}

  void run() {
    io_is_no_progress();
    for (std::unique_lock lock(guard);;) {
      const Index request = requested;
      const bool last = ending;
      const std::shared_ptr<StateFile> file = state;
      lock.unlock();
      monitor.step();
      if (file) file->step(request > done ? StateFile::Write::now : StateFile::Write::if_due);
      lock.lock();
      done = request;
      changed.notify_all();
      if (last) break;
      changed.wait_for(lock, tick, [&] { return ending || requested > done; });
    }
    ended = true;
    changed.notify_all();
  }

  /// Waits until all is written that is known now, but no longer than `limit`.
  void flush(std::chrono::seconds limit) {
    std::unique_lock lock(guard);
    const Index request = ++requested;
    changed.notify_all();
    changed.wait_for(lock, limit, [&] { return done >= request || ended; });
  }

  LivenessMonitor monitor;
  std::mutex guard;  ///< of what follows; never held during a call to the file system
  std::condition_variable changed;
  std::shared_ptr<StateFile> state;
  Index requested = 0, done = 0;
  bool ending = false, ended = false;
};

Supervisor::Supervisor(Communicator& communicator, const StallLimits& limits)
    : rank_(communicator.rank()), host_(communicator.host()), start_(agreed_start(communicator)) {
  start_watchdog({.seconds = limits.watchdog_seconds, .warn_seconds = limits.warn_seconds}, progress(),
                 fmt::format("[rank {}/{} {}] ", rank_, communicator.size(), host_));
  if (communicator.node_rank() == 0) {
    ::mkdir(local_folder().c_str(), 0700);
    remove_dead(local_folder());
  }
  worker_ = std::make_shared<Worker>(LivenessSpec{.rank = rank_,
                                                  .hosts = communicator.hosts(),
                                                  .node_first = communicator.node_first(),
                                                  .node_rank = communicator.node_rank(),
                                                  .start = start_,
                                                  .local_folder = local_folder(),
                                                  .limits = limits});
  communicator.explain_stalls([worker = worker_] { return worker->monitor.explain(); });
  std::thread([worker = worker_] { worker->run(); }).detach();
}

Supervisor::~Supervisor() {
  const std::lock_guard lock(worker_->guard);
  worker_->ending = true;
  worker_->changed.notify_all();
}

Attempt& Supervisor::begin_attempt(Communicator& communicator, const AttemptSpec& spec) {
  convoy::begin_attempt(communicator, spec, attempt_);
  return attempt_;
}

void Supervisor::watch_attempt(Communicator& communicator, const RunState& first, const RunState& before) {
  before_ = before;
  const std::string& folder = attempt_.folders.front();
  if (rank_ == 0) {
    state_ = std::make_shared<StateFile>(folder, attempt_.fence, first);
    const std::lock_guard lock(worker_->guard);
    worker_->state = state_;
  }
  const std::string heartbeats = folder + "/heartbeats";
  std::array<std::int64_t, 1> made{0};
  if (rank_ == 0) {
    std::error_code failed;
    fs::create_directories(heartbeats, failed);
    made[0] = failed ? 0 : 1;
    if (made[0] == 1) remove_old_heartbeats(heartbeats, start_);
    if (failed)
      log::warn("cannot make '{}' ({}); the run continues without heartbeats there", heartbeats, failed.message());
  }
  communicator.maximum(made, "state of the heartbeats");
  if (made[0] == 1) worker_->monitor.write_to(heartbeats);
}

void Supervisor::end_attempt(Exit code, const std::string& message) {
  Result result = result_of(code);
  if (state_) {
    state_->update([&](RunState& state) {
      const bool refused = state.stage == RunStage::start && result == Result::failed;
      if (refused && (before_.result == Result::finished || before_.result == Result::limited)) {
        state = before_;
        return;
      }
      state.stage = RunStage::end;
      state.exit = code;
      state.result = result = result_of(code, state.stop);
      if (result != Result::failed) return;
      state.message = message;
      state.rank = rank_;
    });
    worker_->flush(last_state);
    const std::lock_guard lock(worker_->guard);
    worker_->state.reset();
    state_.reset();
  }
  // All ranks know of an ordinary end, and one has to say so.
  const bool ordinary = result != Result::failed;
  if (ordinary ? rank_ == 0 : !message.empty())
    record_end(attempt_, {.rank = rank_, .host = host_, .result = result, .code = code, .message = message});
}

void Supervisor::end(Exit code) {
  if (code == Exit::ok || code == Exit::stopped) progress().enter(Activity::ending);
  progress().leave(static_cast<int>(code));
  std::unique_lock lock(worker_->guard);
  worker_->ending = true;
  worker_->changed.notify_all();
  worker_->changed.wait_for(lock, last_heartbeat, [&] { return worker_->ended; });
  worker_->monitor.remove_local_file();
}

}  // namespace convoy
