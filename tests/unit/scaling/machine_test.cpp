// SPDX-License-Identifier: Apache-2.0
#include "scaling/machine.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/expect_error.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

Machine machine() {
  Machine machine{.name = "two hosts", .note = "made up", .cores_per_host = 8, .ranks_per_host = 4};
  machine.inside =
      Link{.seconds_per_message = {1e-6, 0.1}, .seconds_per_byte = {1e-10, 0.02}, .measured = true, .ranks = 4};
  machine.overlap = 0.75;
  machine.overlap_measured = true;
  machine.steps = {{.model = "resnet20",
                    .precision = "bf16",
                    .image_size = 32,
                    .batch = 128,
                    .ranks_per_host = 4,
                    .threads = 2,
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
  EXPECT_EQ(found.overlap, 0.75);
  ASSERT_EQ(found.steps.size(), 1U);
  EXPECT_EQ(found.steps[0].precision, "bf16");
  EXPECT_EQ(found.steps[0].batch, 128);
  EXPECT_EQ(found.steps[0].threads, 2);
  EXPECT_EQ(found.steps[0].seconds.value, 0.25);
  EXPECT_EQ(found.steps[0].seconds.error, 0.03);

  EXPECT_EQ(machine_to_extend(path, "another").name, "two hosts");
  EXPECT_EQ(machine_to_extend(folder.path() + "/new.json", "another").name, "another");
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

}  // namespace
}  // namespace convoy
