// SPDX-License-Identifier: Apache-2.0
#include "core/table.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Table, MarkdownKeepsBarsInTheirFields) {
  EXPECT_EQ(table_text({{"run", "layers"}, {"a", "x | y"}}, TableFormat::markdown),
            "| run | layers |\n| --- | -----: |\n| a   | x \\| y |\n");
}

TEST(Table, TextAndCsvShowThemAsTheyAre) {
  EXPECT_EQ(table_text({{"run", "layers"}, {"a", "x | y"}}, TableFormat::text), "run  layers\na     x | y\n");
  EXPECT_EQ(table_text({{"run", "layers"}, {"a", "x | y"}}, TableFormat::csv), "run,layers\na,x | y\n");
}

}  // namespace
}  // namespace convoy
