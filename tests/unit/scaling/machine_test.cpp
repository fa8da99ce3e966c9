// SPDX-License-Identifier: Apache-2.0
#include "scaling/machine.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/json.hpp"
#include "support/expect_error.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

Machine machine() {
  Machine machine{.name = "two hosts", .note = "made up", .cores_per_host = 8, .ranks_per_host = 4};
  machine.inside = Link{.seconds_per_message = {1e-6, 0.1},
                        .seconds_per_byte = {1e-10, 0.02},
                        .measured = true,
                        .ranks = 4,
                        .transport = "mpi"};
  machine.overlap = 0.75;
  machine.overlap_measured = true;
  machine.steps = {{.model = "resnet20",
                    .precision = "bf16",
                    .image_size = 32,
                    .batch = 128,
                    .ranks_per_host = 4,
                    .threads = 2,
                    .conditions = {.recompute = "all", .kernels = "no-winograd", .tuning = "measured"},
                    .seconds = {0.25, 0.03},
                    .measured = true}};
  return machine;
}

TEST(MachineTest, ComesBackAsItWasWritten) {
  const TempFolder folder;
  const std::string path = folder.path() + "/machine.json";
  write_machine(path, machine());
  const Machine found = read_machine(path);
  EXPECT_EQ(found.name, "two hosts");
  EXPECT_EQ(found.note, "made up");
  EXPECT_EQ(found.cores_per_host, 8);
  EXPECT_EQ(found.ranks_per_host, 4);
  ASSERT_TRUE(found.inside);
  EXPECT_FALSE(found.between);
  EXPECT_EQ(found.inside->seconds_per_message.value, 1e-6);
  EXPECT_EQ(found.inside->seconds_per_message.error, 0.1);
  EXPECT_EQ(found.inside->seconds_per_byte.value, 1e-10);
  EXPECT_TRUE(found.inside->measured);
  EXPECT_EQ(found.inside->ranks, 4);
  EXPECT_EQ(found.inside->transport, "mpi");
  EXPECT_EQ(found.overlap, 0.75);
  ASSERT_EQ(found.steps.size(), 1U);
  EXPECT_EQ(found.steps[0].precision, "bf16");
  EXPECT_EQ(found.steps[0].batch, 128);
  EXPECT_EQ(found.steps[0].threads, 2);
  EXPECT_EQ(found.steps[0].conditions, machine().steps[0].conditions);
  EXPECT_EQ(found.steps[0].conditions.words(), " --recompute all --kernels no-winograd --tuning measured");
  EXPECT_EQ(found.steps[0].seconds.value, 0.25);
  EXPECT_EQ(found.steps[0].seconds.error, 0.03);

  EXPECT_EQ(machine_to_extend(path, "").name, "two hosts");
  EXPECT_EQ(machine_to_extend(path, "two hosts").name, "two hosts");
  expect_error(Exit::usage, {"describes 'two hosts'", "--machine-name says 'another'"},
               [&] { machine_to_extend(path, "another"); });
  EXPECT_EQ(machine_to_extend(folder.path() + "/new.json", "another").name, "another");
  EXPECT_EQ(machine_to_extend(folder.path() + "/new.json", "").name, "this machine");
}

/// Files of older versions don't name conditions: their steps were measured under the usual ones, or it isn't known.
TEST(MachineTest, ReadsStepsOfOlderFiles) {
  const TempFolder folder;
  const std::string path = folder.path() + "/machine.json";
  std::ofstream(path)
      << R"({"name": "x", "steps": [{"model": "resnet20", "image_size": 32, "batch": 8, "seconds": 1}]})";
  const Machine found = read_machine(path);
  EXPECT_EQ(found.steps[0].conditions, StepConditions());
  EXPECT_EQ(found.steps[0].conditions.words(), "");
  StepTime other = found.steps[0];
  EXPECT_TRUE(is_same_step(other, found.steps[0]));
  other.conditions.recompute = "all";
  EXPECT_FALSE(is_same_step(other, found.steps[0]));
}

TEST(MachineTest, SaysWhatIsWrongWithAFile) {
  const TempFolder folder;
  const std::string path = folder.path() + "/machine.json";
  expect_error(Exit::usage, {"there is no file", path}, [&] { read_machine(path); });
  for (const auto& [text, reason] :
       {std::pair{"{", "describes no machine"},
        {"{}", "name"},
        {R"({"name": "x", "overlap": 2})", "overlap"},
        {R"({"name": "x", "between": {"seconds_per_message": -1, "seconds_per_byte": 1}})", "seconds_per_message"},
        {R"({"name": "x", "steps": [{"model": "resnet20", "image_size": 32}]})", "batch"}}) {
    std::ofstream(path) << text;
    expect_error(Exit::usage, {reason, "bench comm --machine"}, [&] { read_machine(path); });
  }
}

/// Values that would make a prediction nonsense; each alone in a file that is right without it.
TEST(MachineTest, RefusesWhatNoMachineHas) {
  const TempFolder folder;
  const std::string path = folder.path() + "/machine.json";
  struct Case {
    const char *where, *key;
    Json value;
    const char* reason;
  };
  const auto read = [&](const Case& wrong) {
    Json link = Json::object({{"seconds_per_message", 1e-6}, {"seconds_per_byte", 1e-10}});
    Json step = Json::object({{"model", "resnet20"}, {"image_size", 32}, {"batch", 8}, {"seconds", 0.1}});
    Json machine = Json::object({{"name", "x"}, {"cores_per_host", 2}});
    if (wrong.where == std::string("link")) link[wrong.key] = wrong.value;
    if (wrong.where == std::string("step")) step[wrong.key] = wrong.value;
    machine["between"] = link;
    machine["steps"].add(step);
    if (wrong.where == std::string("machine")) machine[wrong.key] = wrong.value;
    std::ofstream(path) << machine.text(1, Json::Order::as_written);
    return read_machine(path);
  };
  EXPECT_EQ(read({"", "", {}, ""}).steps.size(), 1U);
  EXPECT_EQ(read({"link", "seconds_per_message", 0, ""}).between->seconds_per_byte.value, 1e-10) << "one term may be 0";
  const Case cases[] = {
      {"step", "seconds", 0, "a step takes time"},
      {"step", "seconds", -1, "from 0 to"},
      {"step", "seconds", 1e9, "it counts seconds"},
      {"step", "seconds_error", -0.5, "'seconds_error' is -0.5; it must be a part between 0 and 1"},
      {"step", "seconds_error", 1.5, "a part between 0 and 1"},
      {"step", "batch", 0, "a whole number from 1"},
      {"step", "batch", 2.5, "'batch' is 2.5"},
      {"step", "image_size", -32, "'image_size'"},
      {"step", "ranks_per_host", 0, "'ranks_per_host'"},
      {"step", "threads", -1, "'threads'"},
      {"link", "seconds_per_byte", 25e9, "1 / bandwidth"},
      {"link", "seconds_per_message", 1e3, "it counts seconds"},
      {"link", "seconds_per_byte_error", 2, "'seconds_per_byte_error'"},
      {"link", "ranks", 1.5, "'ranks'"},
      {"link", "transport", "tcp", "it must be mpi or nccl"},
      {"machine", "cores_per_host", -4, "'cores_per_host' is -4"},
      {"machine", "ranks_per_host", 2.5, "'ranks_per_host' is 2.5"},
      {"machine", "ranks_per_host", 1e12, "'ranks_per_host'"},
      {"machine", "overlap", -0.1, "'overlap'"},
      {"machine", "steps", 3, "no list"},
  };
  for (const Case& wrong : cases) {
    SCOPED_TRACE(std::string(wrong.where) + " " + wrong.key);
    expect_error(Exit::usage, {path, wrong.reason}, [&] { read(wrong); });
  }
  std::ofstream(path) << R"({"name": "x", "inside": {"seconds_per_message": 0, "seconds_per_byte": 0}})";
  expect_error(Exit::usage, {"'inside' takes no time"}, [&] { read_machine(path); });
  const char* step = R"({"model": "resnet20", "image_size": 32, "batch": 8, "seconds": 0.1})";
  std::ofstream(path) << fmt::format(R"({{"name": "x", "steps": [{0}, {0}]}})", step);
  expect_error(Exit::usage, {"two of 'steps'"}, [&] { read_machine(path); });
}

}  // namespace
}  // namespace convoy
