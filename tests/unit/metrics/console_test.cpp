// SPDX-License-Identifier: Apache-2.0
#include "metrics/console.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "metrics/epoch_table.hpp"

namespace convoy {
namespace {

StepRecord example() {
  return {.epoch = 3,
          .step = 900,
          .step_in_epoch = 120,
          .steps_per_epoch = 390,
          .images = 2560,
          .counters = {{1.2344, 55.304}},
          .rate = 0.123,
          .seconds = 2.5,
          .data_seconds = 0.002,
          .compute_seconds = 2.204,
          .comm_seconds = 0.25,
          .eta_seconds = 192};
}

TEST(Console, OneLineSaysAllOfAnInterval) {
  EXPECT_EQ(
      step_text(example(), 20, 10),
      "epoch  3/10 step 120/390 |    1024 img/s | loss  1.2344 top1  55.30 | lr 0.123    | data    0.1 compute  110.2 "
      "comm   12.5 other   2.2 ms | eta 0:03:12");
}

TEST(Console, ColumnsStayInPlaceWhileNumbersGrow) {
  StepRecord other = example();
  other.epoch = 10;
  other.step_in_epoch = 7;
  other.images = 26;
  other.counters = {{0.01, 100}};
  other.rate = 1.5e-6;
  other.data_seconds = 1.9;
  const std::string a = step_text(example(), 20, 10), b = step_text(other, 20, 10);
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i] == '|', b[i] == '|') << b;
}

TEST(Console, SmallSpeedsKeepTheirDecimals) {
  StepRecord slow = example();
  slow.images = 16;
  EXPECT_NE(step_text(slow, 1, 0).find("epoch 3 step 120/390 |    6.40 img/s"), std::string::npos)
      << step_text(slow, 1, 0);
}

TEST(Console, Durations) {
  EXPECT_EQ(duration_text(0), "0:00:00");
  EXPECT_EQ(duration_text(59.6), "0:01:00");
  EXPECT_EQ(duration_text(3 * 3600 + 62), "3:01:02");
  EXPECT_EQ(duration_text(2 * 86400 + 4 * 3600 + 5 * 60 + 6), "2d 04:05:06");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(Console, ProgressFitsItsBuffer) {
  std::array<char, 80> buffer{};
  const StepProgress now{.epoch = 3,
                         .step_in_epoch = 7,
                         .steps_per_epoch = 390,
                         .images_per_second = 12.34,
                         .loss = 1.2341,
                         .eta_seconds = 192};
  EXPECT_EQ(progress_text(buffer, now, 10), "epoch 3/10 step 7/390 | 12.3 img/s | loss 1.2341 | eta 0:03:12");
  EXPECT_EQ(progress_text(std::span(buffer).first(10), now, 0), "epoch 3 st");
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  const StepProgress first{1, 1, 9, unknown, unknown, unknown};
  EXPECT_EQ(progress_text(buffer, first, 3), "epoch 1/3 step 1/9");
}

TEST(EpochTable, JoinsTrainingAndValidationOfAnEpoch) {
  EpochTable table;
  table.add(EpochRecord{.epoch = 1, .images = 500, .counters = {{2.5, 20}}, .seconds = 1800, .rate = 0.1}, 50);
  table.add(ValidationRecord{.epoch = 2, .images = 200, .counters = {{1.5, 40, 75}}, .seconds = 360});
  table.add(
      EpochRecord{
          .epoch = 2, .images = 500, .counters = {{1.25, 60}}, .seconds = 1800, .rate = 0.05, .comm_seconds = 3},
      100);
  EXPECT_EQ(table.text(),
            " epoch    hours       loss     top1   val loss  val top1  val top5\n"
            "     1    0.500     2.5000    20.00          -         -         -\n"
            "     2    1.100     1.2500    60.00     1.5000     40.00     75.00\n");
  EXPECT_EQ(
      table.csv(),
      "epoch,step,images,seconds,hours,loss,top1,lr,val_loss,val_top1,val_top5,images_per_sec,data_time,compute_time,"
      "comm_time,limit,val_partial\n"
      "1,50,500,1800,0.500000,2.5,20,0.1,,,,0.2777777777777778,0,0,0,data,\n"
      "2,100,500,1800,1.100000,1.25,60,0.05,1.5,40,75,0.2777777777777778,0,0,3,comm,0\n");
}

}  // namespace
}  // namespace convoy
