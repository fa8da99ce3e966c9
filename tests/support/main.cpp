// SPDX-License-Identifier: Apache-2.0
// Zero tests run is a failure; all skipped is 77.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const auto& unit = *testing::UnitTest::GetInstance();
  if (unit.test_to_run_count() == 0) {
    std::fprintf(stderr, "no test ran\n");
    return 1;
  }
  if (result == 0 && unit.skipped_test_count() == unit.test_to_run_count()) return 77;
  return result;
}
