// SPDX-License-Identifier: Apache-2.0
#include "metrics/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace convoy {
namespace {

LogComparison compare(const std::string& a, const std::string& b) {
  std::istringstream of_a(a), of_b(b);
  return compare_logs(of_a, of_b);
}

std::string train(Index step, double loss, Index images = 8, double seconds = 1) {
  return "{\"split\":\"train\",\"step\":" + std::to_string(step) + ",\"images\":" + std::to_string(images) +
         ",\"images_seen\":" + std::to_string(8 * step) + ",\"loss\":" + std::to_string(loss) +
         ",\"lr\":0.5,\"seconds\":" + std::to_string(seconds) + ",\"ranks\":" + std::to_string(images) + "}\n";
}

TEST(CompareLogs, FindsTheFirstRecordThatDiffersAndWhatInIt) {
  const std::string start = "{\"split\":\"run\",\"event\":\"start\",\"step\":7}\n" + train(1, 3) + train(2, 2);
  const LogComparison found =
      compare(start + train(3, 1) + train(4, 0.5) + train(5, 0.4), start + train(3, 1) + train(4, 0.25) + train(6, 9));
  EXPECT_EQ(found.records, 4);
  EXPECT_EQ(found.equal_to, 3);
  EXPECT_EQ(found.last_a, 5);
  EXPECT_EQ(found.last_b, 6);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->split, "train");
  EXPECT_EQ(found.first->step, 4);
  ASSERT_EQ(found.first->numbers.size(), 1U);
  EXPECT_EQ(found.first->numbers[0].name, "loss");
  EXPECT_EQ(found.first->numbers[0].a, 0.5);
  EXPECT_EQ(found.first->numbers[0].b, 0.25);
}

TEST(CompareLogs, TakesNoNoticeOfTimesAndRanks) {
  const LogComparison found = compare(train(1, 3) + train(2, 2), train(1, 3, 8, 7) + train(2, 2, 8, 9) + "{half a li");
  EXPECT_EQ(found.records, 2);
  EXPECT_EQ(found.equal_to, 2);
  EXPECT_FALSE(found.first);
}

/// Means of intervals of other lengths can't be equal; the rest of the records can.
TEST(CompareLogs, ComparesMeansOfEqualIntervalsOnly) {
  EXPECT_FALSE(compare(train(4, 3, 8), train(4, 2, 16)).first);
  const std::string line = train(4, 2, 16), other = "\"images_seen\":33";
  const LogComparison found =
      compare(train(4, 3, 8), std::string(line).replace(line.find("\"images_seen\":32"), other.size(), other));
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->numbers[0].name, "images_seen");
  // A validation has no interval: another number of images is another validation.
  ASSERT_TRUE(compare("{\"split\":\"val\",\"step\":4,\"images\":10,\"top5\":1}",
                      "{\"split\":\"val\",\"step\":4,\"images\":11,\"top5\":2}")
                  .first);
}

TEST(CompareLogs, ALossThatIsNotFiniteIsANumberLikeOthers) {
  const std::string lost = "{\"split\":\"train\",\"step\":1,\"loss\":null}\n";
  EXPECT_FALSE(compare(lost, lost).first);
  const LogComparison found = compare(lost, "{\"split\":\"train\",\"step\":1,\"loss\":2}\n");
  ASSERT_TRUE(found.first);
  EXPECT_TRUE(std::isnan(found.first->numbers[0].a));
  EXPECT_EQ(found.equal_to, 0);
}

TEST(CompareLogs, LogsWithoutCommonRecords) {
  const LogComparison found = compare(train(1, 3), "");
  EXPECT_EQ(found.records, 0);
  EXPECT_EQ(found.last_a, 1);
  EXPECT_EQ(found.last_b, 0);
}

}  // namespace
}  // namespace convoy
