// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

using Json = nlohmann::json;

class MetricsFolder : public testing::Test {
 protected:
  MetricsSpec spec() const { return {.folder = folder_.path(), .tensorboard = false, .ranks = 2, .epochs = 3}; }
  std::vector<Json> lines(const std::string& file = "metrics.jsonl") const {
    std::ifstream in(folder_ / file);
    std::vector<Json> records;
    for (std::string line; std::getline(in, line);) records.push_back(Json::parse(line));
    return records;
  }
  std::string text(const std::string& file) const {
    std::ifstream in(folder_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const TempFolder folder_;
};

StepRecord step_record(Index step) {
  return {.epoch = 1 + (step - 1) / 40,
          .step = step,
          .step_in_epoch = 1 + (step - 1) % 40,
          .steps_per_epoch = 40,
          .images = 1280,
          .images_seen = step * 64,
          .counters = {{2.5 - 0.01 * static_cast<double>(step), 55.3, 90.5}},
          .rate = 0.1,
          .seconds = 2,
          .data_seconds = 0.1,
          .compute_seconds = 1.5,
          .comm_seconds = 0.3,
          .eta_seconds = 60};
}

EpochRecord epoch_record(Index epoch) {
  return {.epoch = epoch,
          .images = 2560,
          .images_seen = epoch * 2560,
          .counters = {{2, 40}},
          .seconds = 4.25,
          .rate = 0.1,
          .data_seconds = 0.5,
          .compute_seconds = 2.5,
          .comm_seconds = 1};
}

ValidationRecord validation_record(Index epoch) {
  return {.epoch = epoch,
          .step = epoch * 40,
          .images = 203,
          .images_seen = epoch * 2560,
          .counters = {{1.75, 100.0 * 101 / 203, 100.0 * 180 / 203}},
          .seconds = 0.5};
}

TEST_F(MetricsFolder, ATrainRecordHasTheJobsSpeedAndTimesThatAddUp) {
  Metrics metrics(spec());
  metrics.train(step_record(20));
  const auto records = lines();
  ASSERT_EQ(records.size(), 1U);
  const Json& r = records[0];
  EXPECT_EQ(r.at("split"), "train");
  EXPECT_EQ(r.at("epoch"), 1);
  EXPECT_EQ(r.at("step"), 20);
  EXPECT_EQ(r.at("step_in_epoch"), 20);
  EXPECT_EQ(r.at("steps_per_epoch"), 40);
  EXPECT_EQ(r.at("images_seen"), 1280);
  EXPECT_DOUBLE_EQ(r.at("loss"), 2.3);
  EXPECT_DOUBLE_EQ(r.at("top1"), 55.3);
  EXPECT_DOUBLE_EQ(r.at("top5"), 90.5);
  EXPECT_DOUBLE_EQ(r.at("lr"), 0.1);
  EXPECT_DOUBLE_EQ(r.at("images_per_sec"), 640);
  EXPECT_DOUBLE_EQ(r.at("images_per_sec_per_rank"), 320);
  EXPECT_DOUBLE_EQ(r.at("images_per_sec").get<double>() * r.at("seconds").get<double>(), r.at("images").get<double>());
  EXPECT_DOUBLE_EQ(r.at("step_time"), 0.1);
  EXPECT_DOUBLE_EQ(r.at("data_time"), 0.005);
  const double sum = r.at("data_time").get<double>() + r.at("compute_time").get<double>() +
                     r.at("comm_time").get<double>() + r.at("other_time").get<double>();
  EXPECT_NEAR(sum, r.at("step_time").get<double>(), 1e-12);
  EXPECT_DOUBLE_EQ(r.at("eta"), 60);
  EXPECT_EQ(r.at("ranks"), 2);
}

TEST_F(MetricsFolder, ValidationAndEpochRecords) {
  Metrics metrics(spec());
  metrics.train(step_record(40));
  metrics.epoch(epoch_record(1));
  metrics.validation(validation_record(1));
  const auto records = lines();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].at("split"), "epoch");
  EXPECT_EQ(records[1].at("step"), 40);
  EXPECT_EQ(records[1].at("images_seen"), 2560);
  EXPECT_EQ(records[1].at("limit"), "compute");
  EXPECT_DOUBLE_EQ(records[1].at("other_time"), 0.25);
  EXPECT_EQ(records[2].at("split"), "val");
  EXPECT_EQ(records[2].at("epoch"), 1);
  EXPECT_EQ(records[2].at("images"), 203);
  EXPECT_EQ(records[2].at("images_seen"), 2560);
  EXPECT_EQ(records[2].at("top1_count"), 101);
  EXPECT_DOUBLE_EQ(records[2].at("top1"), 100.0 * 101 / 203);
  EXPECT_DOUBLE_EQ(records[2].at("top5"), 100.0 * 180 / 203);
  EXPECT_NE(text("summary.csv").find("\n1,40,2560,4.25,0.001319,2,40,0.1,1.75,"), std::string::npos)
      << text("summary.csv");
}

TEST_F(MetricsFolder, OtherValuesOfKNameTheirField) {
  MetricsSpec three = spec();
  three.k = 3;
  Metrics metrics(three);
  metrics.train(step_record(20));
  ValidationRecord one = validation_record(1);
  one.k = 1;
  metrics.validation(one);
  const auto records = lines();
  EXPECT_TRUE(records.at(0).contains("top3"));
  EXPECT_FALSE(records.at(0).contains("top5"));
  EXPECT_DOUBLE_EQ(records.at(1).at("top1"), 100.0 * 101 / 203);
}

TEST_F(MetricsFolder, NumbersThatAreNotFiniteAndBrokenTextsStayJson) {
  Metrics metrics(spec());
  StepRecord bad = step_record(20);
  bad.counters[Counter::loss] = std::numeric_limits<double>::quiet_NaN();
  metrics.train(bad);
  metrics.event("start", {{"command", "convoy train --name caf\xe9"}}, {{"seed", 7}});
  const auto records = lines();
  EXPECT_TRUE(records.at(0).at("loss").is_null());
  EXPECT_EQ(records.at(1).at("split"), "run");
  EXPECT_EQ(records.at(1).at("event"), "start");
  EXPECT_TRUE(records.at(1).at("seed").is_number_integer()) << "a whole number is written as one";
  EXPECT_EQ(records.at(1).at("seed"), 7);
  EXPECT_EQ(records.at(1).at("command"), "convoy train --name caf\xef\xbf\xbd");
}

/// Steps 20, 40 | epoch 1 | 60, 80 | epoch 2, from a step on.
void run_from(Metrics& metrics, Index step) {
  for (Index s = step + 20; s <= 80; s += 20) {
    metrics.train(step_record(s));
    if (s % 40 == 0) metrics.epoch(epoch_record(s / 40));
    if (s % 40 == 0) metrics.validation(validation_record(s / 40));
    metrics.tensors("gradients", s, {});
  }
}

TEST_F(MetricsFolder, AResumedRunsFilesEqualTheUninterruptedRuns) {
  {
    Metrics straight(spec());
    run_from(straight, 0);
  }
  const std::string log = text("metrics.jsonl"), summary = text("summary.csv"), monitor = text("monitor.jsonl");
  std::string table;
  {
    Metrics again(spec());
    run_from(again, 0);
    table = again.table();
  }
  for (const Index resume_step : {20, 40, 60}) {
    MetricsSpec resumed = spec();
    resumed.append = true;
    resumed.resume_step = resume_step;
    Metrics metrics(resumed);
    run_from(metrics, resume_step);
    EXPECT_EQ(text("metrics.jsonl"), log) << "resumed at " << resume_step;
    EXPECT_EQ(text("summary.csv"), summary);
    EXPECT_EQ(text("monitor.jsonl"), monitor);
    EXPECT_EQ(metrics.table(), table);
  }
}

TEST_F(MetricsFolder, WithoutAFolderNothingIsWritten) {
  MetricsSpec console = spec();
  console.folder.clear();
  console.tensorboard = true;
  Metrics metrics(console);
  run_from(metrics, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_NE(metrics.table().find("49.75"), std::string::npos) << metrics.table();
}

TEST_F(MetricsFolder, TensorBoardEventsLieInAFolderOfTheirOwn) {
  MetricsSpec with_events = spec();
  with_events.tensorboard = true;
  Metrics metrics(with_events);
  const std::filesystem::directory_iterator files(folder_ / "tensorboard");
  const auto file = begin(files)->path();
  const auto before = std::filesystem::file_size(file);
  metrics.train(step_record(20));
  const auto after_train = std::filesystem::file_size(file);
  metrics.validation(validation_record(1));
  const auto after_validation = std::filesystem::file_size(file);
  metrics.epoch(epoch_record(1));
  EXPECT_GT(after_train, before);
  EXPECT_GT(after_validation, after_train);
  EXPECT_GT(std::filesystem::file_size(file), after_validation);
}

TEST_F(MetricsFolder, MonitorRecordsHaveTheirOwnFile) {
  Metrics metrics(spec());
  const float values[] = {3, -4};
  metrics.tensors("parameters", 10, {summarise("fc.weight", values, 2)});
  const auto records = lines("monitor.jsonl");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].at("group"), "parameters");
  EXPECT_EQ(records[0].at("step"), 10);
  EXPECT_EQ(records[0].at("tensors").at("fc.weight"),
            (Json{{"norm", 5.0}, {"min", -4.0}, {"max", 3.0}, {"mean", -0.5}}));
}

}  // namespace
}  // namespace convoy
