// SPDX-License-Identifier: Apache-2.0
// Every case is a process of its own, which the watchdog ends or lets live.
#include "run/watchdog.hpp"
#include "core/clock.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "core/blocking_io.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

using std::chrono::milliseconds;
using testing::ContainsRegex;
using testing::HasSubstr;

struct Ended {
  int code = -1;
  std::string said;
  double seconds = 0;
};

/// `meanwhile` runs in the parent.
Ended run(const WatchdogSpec& spec, const std::function<void()>& child,
          const std::function<void(pid_t)>& meanwhile = {}) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const auto begin = real_clock().now();
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    start_watchdog(spec);
    child();
    _exit(0);
  }
  close(ends[1]);
  if (meanwhile) meanwhile(pid);
  Ended ended;
  char piece[256];
  for (ssize_t got = 0; (got = read(ends[0], piece, sizeof piece)) > 0;)
    ended.said.append(piece, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  ended.seconds = seconds_since(begin);
  return ended;
}

/// A system call that does not return: a read from a pipe that nobody writes.
void stuck() {
  int ends[2];
  if (pipe(ends) != 0) return;
  char c = 0;
  static_cast<void>(!read(ends[0], &c, 1));
}

void work_for(milliseconds time) {
  const auto end = real_clock().now() + time;
  while (real_clock().now() < end) {
  }
}

TEST(WatchdogTest, EndsAProcessWhoseMainThreadIsStuck) {
  const Ended ended = run({.seconds = 0.3, .speaker = "[rank 2/4 n1] "}, [] {
    progress().at(3, 20);
    progress().enter(Activity::data);
    progress().doing("loading the samples");
    const BlockingIo call("read", "/data/train-00001.h5");
    stuck();
  });
  EXPECT_EQ(ended.code, 5);
  EXPECT_LT(ended.seconds, 2);
  EXPECT_THAT(ended.said,
              ContainsRegex(R"(^\[rank 2/4 n1\] error: no progress for 0\.[3-9] s in phase data, epoch 3, step 20 )"
                            R"(\(loading the samples, read of '/data/train-00001.h5' for 0\.[3-9] s; main thread in )"
                            R"(state [SD]\); .*host.*--watchdog-seconds)"));
  EXPECT_EQ(std::count(ended.said.begin(), ended.said.end(), '\n'), 1);
}

TEST(WatchdogTest, LetsAMainThreadLiveThatMoves) {
  const Ended ended = run({.seconds = 0.3}, [] {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(milliseconds(50));
      progress().mark();
    }
  });
  EXPECT_EQ(ended.code, 0) << ended.said;
  EXPECT_EQ(ended.said, "");
}

TEST(WatchdogTest, LetsAMainThreadLiveThatComputes) {
  EXPECT_EQ(run({.seconds = 0.3}, [] { work_for(milliseconds(1000)); }).code, 0);
}

TEST(WatchdogTest, EndsAMainThreadThatSpinsTooLong) {
  EXPECT_EQ(run({.seconds = 0.1}, [] { work_for(milliseconds(5000)); }).code, 5);
}

TEST(WatchdogTest, AStoppedProcessStartsAnew) {
  const Ended ended = run(
      {.seconds = 1},
      [] {
        std::this_thread::sleep_for(milliseconds(700));  // stopped in here
        std::this_thread::sleep_for(milliseconds(600));
        progress().mark();
      },
      [](pid_t child) {
        std::this_thread::sleep_for(milliseconds(500));
        kill(child, SIGSTOP);
        std::this_thread::sleep_for(milliseconds(1600));
        kill(child, SIGCONT);
      });
  EXPECT_EQ(ended.code, 0) << ended.said;
}

TEST(WatchdogTest, AtTheEndSpinningIsNoWork) {
  const Ended ended = run({.seconds = 0.3}, [] {
    progress().enter(Activity::ending);
    work_for(milliseconds(5000));
  });
  EXPECT_EQ(ended.code, 5);
  EXPECT_THAT(ended.said, HasSubstr("in phase ending"));
  EXPECT_LT(ended.seconds, 2);
}

/// The time for that is long; here only that nothing is said of it.
TEST(WatchdogTest, AProcessThatLeavesIsLeftAlone) {
  const Ended ended = run({.seconds = 0.2, .warn_seconds = 0.1}, [] {
    progress().leave(3);
    std::this_thread::sleep_for(milliseconds(600));
  });
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.said, "");
}

TEST(WatchdogTest, WarnsOnceBefore) {
  const Ended ended = run({.seconds = 30, .warn_seconds = 0.2}, [] { std::this_thread::sleep_for(milliseconds(700)); });
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.said,
              ContainsRegex("^warning: no progress for 0.2 s in phase start-up .no operation known; main thread"));
  EXPECT_EQ(std::count(ended.said.begin(), ended.said.end(), '\n'), 1);
}

TEST(WatchdogTest, ZeroIsOff) {
  const Ended ended = run({.seconds = 0, .warn_seconds = 0.1}, [] { std::this_thread::sleep_for(milliseconds(400)); });
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.said, "");
}

}  // namespace
}  // namespace convoy
