// SPDX-License-Identifier: Apache-2.0
#include "options/option.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Bounds, ends) {
  EXPECT_TRUE(from_to(0, 1).contains(0));
  EXPECT_TRUE(from_to(0, 1).contains(1));
  EXPECT_FALSE(from_below(0, 1).contains(1));
  EXPECT_FALSE(above(0).contains(0));
  EXPECT_EQ(from_to(0, 1).text(), "0 to 1");
  EXPECT_EQ(from_below(0, 1).text(), ">= 0 and < 1");
  EXPECT_EQ(above(0).text(), "> 0");
  EXPECT_EQ(at_least(2).text(), ">= 2");
  EXPECT_EQ(Bounds{}.text(), "a number");
}

TEST(Values, numbers_come_back_to_the_bit) {
  for (const double value : {0.1, 1e-300, 1.0 / 3, 5e-324, 123456789.0, 0.30000000000000004}) {
    EXPECT_EQ(read_number(print_number(value), Bounds{}), value);
  }
  for (const float value : {0.1F, 1e-5F, 1.F / 3}) {
    EXPECT_EQ(static_cast<float>(read_number(print_number(value), Bounds{})), value);
  }
}

TEST(Values, an_integer_stays_in_its_type) {
  int narrow = 0;
  const Option option = number_option("n", "N", narrow, at_least(0), "");
  option.set("2147483647");
  EXPECT_EQ(narrow, 2147483647);
  EXPECT_THROW(option.set("2147483648"), BadValue);
  EXPECT_EQ(narrow, 2147483647);
}

TEST(Values, a_large_integer_is_compared_exactly) {
  const Bounds bounds = from_to(0, 9007199254740992);  // 2^53: the next whole number is no double
  EXPECT_EQ(read_integer("9007199254740992", bounds), 9007199254740992);
  EXPECT_THROW(read_integer("9007199254740993", bounds), BadValue);
  EXPECT_THROW(read_integer("-9007199254740993", from_to(-9007199254740992, 0)), BadValue);
}

TEST(Values, a_bad_list_changes_nothing) {
  std::vector<double> list = {1, 2};
  const Option option = list_option("l", "A,B", list, above(0), "");
  EXPECT_THROW(option.set("3,-1"), BadValue);
  EXPECT_EQ(list, (std::vector<double>{1, 2}));
  option.set("3, 4.5");
  EXPECT_EQ(option.print(), "3,4.5");
}

TEST(Values, booleans) {
  EXPECT_TRUE(read_bool("true") && read_bool("on") && read_bool("yes") && read_bool("1"));
  EXPECT_FALSE(read_bool("false") || read_bool("off") || read_bool("no") || read_bool("0"));
  EXPECT_THROW(read_bool("TRUE "), BadValue);
}

TEST(Hashed, says_what_decides_bits) {
  int steps = 0;
  bool acts = false;
  Option option = number_option("steps", "N", steps, at_least(0), "");
  EXPECT_EQ(option.hashed(), "") << "it decides no bits";
  EXPECT_EQ(option.decides_bits().hashed(), "steps=0");
  option.decides_bits_unless({"0", "2"});
  EXPECT_EQ(option.hashed(), "");
  steps = 2;
  EXPECT_EQ(option.hashed(), "");
  steps = 3;
  EXPECT_EQ(option.hashed(), "steps=3");
  option.hashed_by_old_names({{"3", "three"}, {"three", "four"}});
  EXPECT_EQ(option.hashed(), "steps=three");
  option.decides_bits_where([&acts] { return acts; });
  EXPECT_EQ(option.hashed(), "");
  acts = true;
  EXPECT_EQ(option.hashed(), "steps=three");
}

}  // namespace
}  // namespace convoy
