// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(OneLine, ShowsControlCharactersAsPictures) {
  EXPECT_EQ(one_line("#1 dog, \"caf\xC3\xA9\" \xE9"), "#1 dog, \"caf\xC3\xA9\" \xE9");
  EXPECT_EQ(one_line("a\nb\tc\x1B[0m\x7F"), "a\u240Ab\u2409c\u241B[0m\u2421");
  EXPECT_EQ(one_line(std::string("\0", 1)), "\u2400");
}

TEST(ValidUtf8, ReplacesWhatIsNone) {
  const std::string replaced = "\uFFFD";
  for (const char* valid : {"", "abc", "caf\u00E9", "\u0800\uFFFD\uD7FF", "\U00010000\U0010FFFF"})
    EXPECT_EQ(valid_utf8(valid), valid);
  EXPECT_EQ(valid_utf8("r\xE9"), "r" + replaced);
  EXPECT_EQ(valid_utf8("\xE9s"), replaced + "s");
  EXPECT_EQ(valid_utf8("\x80"), replaced);
  EXPECT_EQ(valid_utf8("\xC3"), replaced);
  // Longer than needed, a surrogate, too large: RFC 3629, section 4.
  EXPECT_EQ(valid_utf8("\xC0\xAF"), replaced + replaced);
  EXPECT_EQ(valid_utf8("\xE0\x9F\xBF"), replaced + replaced + replaced);
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), replaced + replaced + replaced);
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), replaced + replaced + replaced + replaced);
  EXPECT_EQ(valid_utf8("\xE2\x82"), replaced + replaced);
}

TEST(Counted, AgreesWithItsNumber) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1U, "class"), "1 class");
  EXPECT_EQ(counted(7, "class"), "7 classes");
  EXPECT_EQ(counted(1.0, "epoch"), "1 epoch");
  EXPECT_EQ(counted(0.5, "epoch"), "0.5 epochs");
  EXPECT_EQ(every(1, "step"), "every step");
  EXPECT_EQ(every(4, "step"), "every 4 steps");
}

}  // namespace
}  // namespace convoy
