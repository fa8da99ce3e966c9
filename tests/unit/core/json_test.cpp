// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace convoy {
namespace {

TEST(Json, writes_what_it_was_given) {
  Json json = Json::object({{"z", 1}, {"a", "text"}, {"half", 0.5}, {"one", 1.0}, {"none", 0.0}, {"yes", true}});
  json["most"] = std::numeric_limits<std::uint64_t>::max();
  json["least"] = std::numeric_limits<std::int64_t>::min();
  json["list"] = std::vector<int>{1, 2};
  json["nothing"] = std::numeric_limits<double>::quiet_NaN();
  json["of"].set({{"its", std::map<std::string, double>{{"own", 1e300}}}});
  EXPECT_EQ(json.text(-1, Json::Order::as_written),
            R"({"z":1,"a":"text","half":0.5,"one":1.0,"none":0.0,"yes":true,"most":18446744073709551615,)"
            R"("least":-9223372036854775808,"list":[1,2],"nothing":null,"of":{"its":{"own":1e+300}}})");
  EXPECT_EQ(Json::object({{"z", 1}, {"a", Json::list()}}).text(1, Json::Order::sorted), "{\n \"a\": [],\n \"z\": 1\n}");
  EXPECT_EQ(Json("\xff\"\n").text(-1, Json::Order::sorted), "\"\xEF\xBF\xBD\\\"\\n\"");
}

TEST(Json, reads_what_it_wrote) {
  const std::string text = R"({"b":[1,-2,3.25,"x",null,{"c":false}],"a":18446744073709551615,"0.1":0.1})";
  const Json json = Json::parse(text);
  EXPECT_EQ(json.text(-1, Json::Order::as_written), text);
  const Json& list = json.at("b");
  EXPECT_EQ(list.items()[1].as<int>(), -2);
  EXPECT_EQ(list.items()[2].as<double>(), 3.25);
  EXPECT_EQ(list.items()[3], "x");
  EXPECT_TRUE(list.items()[4].is_null());
  EXPECT_FALSE(list.items()[5].at("c").as<bool>());
  EXPECT_EQ(json.at("a").as<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json.value("0.1", 0.0), 0.1);
  EXPECT_EQ(json.value("missing", "other"), "other");
  EXPECT_EQ(Json::parse("[3,4]").as<std::vector<int>>(), (std::vector<int>{3, 4}));
  EXPECT_EQ((Json::parse(R"({"k":"v"})").as<std::map<std::string, std::string>>().at("k")), "v");
}

TEST(Json, refuses_what_does_not_fit) {
  EXPECT_THROW(Json::parse("{\"a\":"), std::invalid_argument);
  EXPECT_TRUE(Json::parse_or_null("{\"a\":").is_null());
  EXPECT_TRUE(Json::parse_or_null(std::string(100000, '[')).is_null());
  EXPECT_TRUE(Json::parse_or_null(std::string(1000, '[') + std::string(1000, ']')).is_null());
  EXPECT_THROW(Json::parse("3000000000").as<int>(), std::invalid_argument);
  EXPECT_THROW(Json::parse("1e300").as<int>(), std::invalid_argument);
  EXPECT_THROW(Json::parse("18446744073709551615").as<std::int64_t>(), std::invalid_argument);
  EXPECT_THROW(Json::parse("-1").as<std::uint32_t>(), std::invalid_argument);
  EXPECT_THROW(Json::parse("true").as<int>(), std::invalid_argument);
  EXPECT_THROW(Json::parse("1").as<std::string>(), std::invalid_argument);
  EXPECT_THROW(Json::parse("[]").at("a"), std::invalid_argument);
  EXPECT_THROW(Json::parse("{}").at("a"), std::invalid_argument);
  EXPECT_EQ(Json::parse("[]").find("a"), nullptr);
}

TEST(Json, refuses_two_members_of_one_name_if_asked) {
  const std::string twice = R"({"a":{"b":1},"c":{"b":2,"b":3}})";
  EXPECT_EQ(Json::parse(twice).at("c").at("b").as<int>(), 3);
  EXPECT_THROW(Json::parse(twice, Json::Names::once), std::invalid_argument);
  EXPECT_EQ(Json::parse(R"({"a":{"b":1},"c":[{"b":2},{"b":3}]})", Json::Names::once).at("a").at("b").as<int>(), 1);
}

}  // namespace
}  // namespace convoy
