// SPDX-License-Identifier: Apache-2.0
#include "run/run_state.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/fence.hpp"
#include "support/expect_error.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

RunState some_state() {
  RunState state{.run = "r1", .attempt = 3, .scheduler = "slurm", .job = "17", .host = "n0", .pid = 5, .ranks = 4};
  state.stage = RunStage::evaluate;
  state.step = 120;
  state.checkpoint = "checkpoints/step-00000100.h5";
  state.checkpoint_step = 100;
  state.stop = "SIGUSR1";
  return state;
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(RunState, ComesBackFromItsText) {
  const RunState state = some_state();
  EXPECT_EQ(to_text(parse_run_state(to_text(state), "x")), to_text(state));
  EXPECT_EQ(parse_run_state(to_text(state), "x").stage, RunStage::evaluate);
}

TEST(RunState, NamesAFileThatIsNoState) {
  for (const char* text : {"", "{}", "[1]", "{\"run\": 3}"})
    expect_error(Exit::data, {"some/state.json"}, [&] { parse_run_state(text, "some/state.json"); });
}

TEST(RunState, TheRankThatFailedFirstCounts) {
  const TempFolder folder;
  EXPECT_FALSE(read_run_state(folder.path()).has_value());
  write(folder / "state.json", to_text(some_state()));
  EXPECT_EQ(read_run_state(folder.path())->result, Result::running);
  std::filesystem::create_directory(folder / "attempts");
  write(folder / "attempts/0002.end.json", R"({"result": "stopped", "exit": 75})");  // an older attempt's
  EXPECT_EQ(read_run_state(folder.path())->result, Result::running);
  write(folder / "attempts/0003.end.json", "");
  EXPECT_EQ(read_run_state(folder.path())->result, Result::running);
  write(folder / "attempts/0003.end.json", R"({"result": "failed", "exit": 3, "message": "no room", "rank": 2})");
  const RunState state = *read_run_state(folder.path());
  EXPECT_EQ(state.result, Result::failed);
  EXPECT_EQ(state.exit, Exit::data);
  EXPECT_EQ(state.message, "no room");
  EXPECT_EQ(state.rank, 2);
}

TEST(RunState, OfAJobThatAnOptionEndedIsLimitedWhateverVersionWroteIt) {
  EXPECT_EQ(result_of(Exit::ok, "--max-steps 9"), Result::limited);
  EXPECT_EQ(result_of(Exit::ok, "SIGTERM"), Result::finished) << "too late to stop anything";
  EXPECT_EQ(result_of(Exit::stopped, "SIGTERM"), Result::stopped);
  const TempFolder folder;
  RunState state = some_state();
  state.step = 9;
  state.steps = 30;
  state.stop = "--max-steps 9";
  state.result = Result::finished;
  write(folder / "state.json", to_text(state));
  EXPECT_EQ(read_run_state(folder.path())->result, Result::limited);
  std::filesystem::create_directory(folder / "attempts");
  write(folder / "attempts/0003.end.json", R"({"result": "finished", "exit": 0})");
  EXPECT_EQ(read_run_state(folder.path())->result, Result::limited);
}

TEST(RunState, AnEmptyOneIsMadeUpFromTheNewestAttempt) {
  const TempFolder folder;
  write(folder / "state.json", "");
  expect_error(Exit::data, {"state.json"}, [&] { find_run_state(folder.path()); });
  claim_attempt({folder.path()}, {.run = "r1", .job = "17", .host = "n0", .pid = 5, .started = 9});
  RunState state = *find_run_state(folder.path());
  EXPECT_EQ(state.attempt, 1);
  EXPECT_EQ(state.job, "17");
  EXPECT_EQ(state.result, Result::running);
  write(folder / "attempts/0001.end.json", R"({"result": "stopped", "exit": 75})");
  EXPECT_EQ(find_run_state(folder.path())->result, Result::stopped);
}

TEST(RunState, PassesToAnAttemptThatWroteNone) {
  const TempFolder folder;
  RunState state = some_state();
  state.result = Result::finished;
  std::filesystem::create_directory(folder / "attempts");
  pass_to_attempt(state, folder.path(), 4);
  EXPECT_EQ(state.result, Result::running);
  write(folder / "attempts/0004.end.json", R"({"result": "failed", "exit": 2, "message": "no such file"})");
  pass_to_attempt(state, folder.path(), 4);
  EXPECT_EQ(state.result, Result::failed);
  EXPECT_EQ(state.message, "no such file");
}

}  // namespace
}  // namespace convoy
