// SPDX-License-Identifier: Apache-2.0
// Saves beside the steps, on a disk that hangs or is full.
#include "checkpoint/saver.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/progress.hpp"
#include "core/replicas.hpp"
#include "support/expect_error.hpp"
#include "support/failing_calls.hpp"
#include "support/manual_clock.hpp"
#include "support/mpi_main.hpp"
#include "support/small_plan.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {
constexpr int replicas = 5;

class SaverTest : public testing::Test {
 public:
  ~SaverTest() override {
    set_failing_calls("");
    communicator_.barrier("end of test");
  }

 protected:
  SaverTest() : communicator_(test_session(), {}) {
    if (communicator_.rank() == 0) owned_ = std::make_unique<TempFolder>();
    folder_ = owned_ ? owned_->path() : std::string();
    communicator_.broadcast(folder_, "test folder");
    saver_ = std::make_unique<Saver>(
        communicator_,
        Saver::Place{
            .folder = folder_, .keep = 2, .plan = small_.plan, .layout = small_.layout, .fence = Fence({}, 1)});
  }
  void begin(const std::string& name, Index step, bool with_shards) {
    SaveSpec spec{.name = name, .with_shards = with_shards};
    spec.meta.position = {.step = step};
    spec.meta.replicas = replicas;
    if (communicator_.rank() == 0)
      spec.averaged = std::make_shared<HostSet>(formula_set(small_, static_cast<std::uint64_t>(step)));
    const ReplicaRun run = deal_replicas(replicas, communicator_.size(), communicator_.rank());
    for (int r = run.first; with_shards && r < run.first + run.count; ++r)
      spec.shards.push_back({r, step, formula_set(small_, static_cast<std::uint64_t>(r))});
    saver_->begin(std::move(spec));
  }
  /// The agreement of every step.
  void agree() { saver_->advance(-communicator_.agree_later({-saver_->finished_parts()})[0]); }
  /// All ranks make the same number of steps: what they agree on is the same.
  void steps_until_idle() {
    while (!saver_->idle()) {
      std::this_thread::yield();
      agree();
    }
  }
  std::vector<std::string> files() {
    communicator_.barrier("before");
    auto all = list_folder(folder_);
    communicator_.barrier("after");
    return all;
  }

  Communicator communicator_;
  std::unique_ptr<TempFolder> owned_;
  std::string folder_;
  const SmallPlan small_ = small_plan();
  std::unique_ptr<Saver> saver_;
};

TEST_F(SaverTest, StepsGoOnWhileADiskDoesNotAnswer) {
  for (const bool with_shards : {false, true}) {
    set_failing_calls("fsync:.h5:HOLD");
    begin("last", 7, with_shards);
    for (int step = 0; step < 10; ++step) agree();
    EXPECT_FALSE(saver_->idle());
    communicator_.barrier("before the disk answers");
    set_failing_calls("");
    steps_until_idle();
    const SaveResult result = *saver_->take_result();
    EXPECT_EQ(result.code, Exit::ok);
    EXPECT_EQ(find_damage(main_path(folder_, "last")), "");
    EXPECT_EQ(files().size(), with_shards ? 6U : 1U);
  }
}

TEST_F(SaverTest, SavesFollowInOrder) {
  begin("best", 5, false);
  begin("step-00000005", 5, true);
  begin("last", 5, false);
  saver_->finish();
  for (const char* name : {"best", "step-00000005", "last"}) {
    const SaveResult result = *saver_->take_result();
    EXPECT_EQ(result.spec.name, name);
    EXPECT_EQ(result.code, Exit::ok);
    EXPECT_EQ(result.spec.shards.empty(), name != std::string("step-00000005"));  // its memory comes back
  }
  EXPECT_FALSE(saver_->take_result().has_value());
}

TEST_F(SaverTest, OneRankThatFailsEndsTheSaveAndTheNextOneWorks) {
  begin("epoch-0001", 1, true);
  saver_->finish();
  EXPECT_EQ(saver_->take_result()->code, Exit::ok);
  if (communicator_.rank() == communicator_.size() - 1) set_failing_calls("write:.shard-0004:ENOSPC");
  begin("epoch-0002", 2, true);
  begin("last", 2, false);
  steps_until_idle();
  EXPECT_EQ(saver_->take_result()->code, Exit::data);
  EXPECT_EQ(saver_->take_result()->code, Exit::ok);
  std::vector<std::string> expected{"epoch-0001.h5"};
  for (int r = 0; r < replicas; ++r) expected.push_back(shard_file("epoch-0001", r, 1));
  expected.emplace_back("last.h5");
  EXPECT_EQ(files(), expected);  // nothing of the one that failed
  begin("epoch-0003", 3, true);
  saver_->finish();
  EXPECT_EQ(saver_->take_result()->code, Exit::ok);
}

TEST_F(SaverTest, AFileSystemThatHangsIsNamed) {
  if (communicator_.size() > 1) return;  // the others would wait for the rank that gives up to end the job
  ManualClock clock;
  Saver impatient(communicator_, {.folder = folder_,
                                  .plan = small_.plan,
                                  .layout = small_.layout,
                                  .fence = Fence({}, 2),
                                  .timeout_seconds = 60,
                                  .clock = clock});
  set_failing_calls("write:last.h5:HOLD");
  impatient.begin({.name = "last", .averaged = std::make_shared<HostSet>(formula_set(small_, 1))});
  // The clock only moves while finish() waits: the write must hang by then.
  std::array<char, 256> call{};
  while (describe_longest_io(call.data(), call.size()) == 0 || std::strstr(call.data(), "last.h5") == nullptr)
    std::this_thread::yield();
  expect_error(Exit::communication, {"'last'", "last.h5", "--stall-abort-seconds"}, [&] { impatient.finish(); });
  EXPECT_NEAR(clock.seconds(), 60, 1);
  set_failing_calls("");
  while (impatient.finished_parts() < 1) std::this_thread::yield();
}

}  // namespace
}  // namespace convoy
