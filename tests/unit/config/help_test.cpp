// SPDX-License-Identifier: Apache-2.0
#include "config/print.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "config/options.hpp"

namespace convoy {
namespace {

template <class Config>
std::string help(HelpDepth depth, const std::string& topic = {}) {
  std::string text;
  see_options<Config>(
      [&](const auto& groups) { text = option_help(groups, !std::is_same_v<Config, TrainConfig>, depth, topic); });
  return text;
}

template <class Config>
std::string names() {
  std::string text;
  see_options<Config>([&](const auto& groups) { text = all_option_names(groups); });
  return text;
}

TEST(Help, shows_default_unit_and_range_of_every_option) {
  const std::string text = help<TrainConfig>(HelpDepth::all);
  TrainConfig config;
  for (const auto& group : options_of(config)) {
    EXPECT_NE(text.find("\n" + group.title + ":\n"), std::string::npos) << group.title;
    for (const auto& option : group.options) {
      EXPECT_NE(text.find(" --" + option.name), std::string::npos) << option.name;
    }
  }
  EXPECT_NE(text.find("-b, --batch-size N"), std::string::npos);
  EXPECT_NE(text.find("default: 128; 1 to 16777216"), std::string::npos);
  EXPECT_NE(text.find("--checkpoints, --no-checkpoints"), std::string::npos);
  EXPECT_NE(text.find("(also: --wd)"), std::string::npos);
}

std::size_t options_in(const std::string& text) {
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with("      --") || line.find(", --") == 4;
  return count;
}

TEST(Help, of_the_first_day_is_25_options) {
  const std::string text = help<TrainConfig>(HelpDepth::usual);
  EXPECT_EQ(options_in(text), 25U + 2) << "and two lines that lead further";
  EXPECT_EQ(text.find("--wd"), std::string::npos);
  EXPECT_EQ(text.find("--inject-fault"), std::string::npos);
  EXPECT_NE(help<EvaluateConfig>(HelpDepth::usual).find("--flip-test"), std::string::npos) << "its own are all there";
}

TEST(Help, of_a_topic_is_its_section_and_of_a_word_what_holds_it) {
  const std::string data = help<TrainConfig>(HelpDepth::usual, "data");
  EXPECT_NE(data.find("\nNetwork input:\n"), std::string::npos);
  EXPECT_EQ(data.find("--lr"), std::string::npos);
  const std::string momentum = help<TrainConfig>(HelpDepth::usual, "momentum");
  EXPECT_EQ(options_in(momentum), 5U) << momentum;
  EXPECT_NE(help<TrainConfig>(HelpDepth::usual, "wd").find("--weight-decay"), std::string::npos) << "other names too";
}

TEST(Help, lines_fit_a_terminal) {
  for (const std::string& text : {help<TrainConfig>(HelpDepth::usual), help<EvaluateConfig>(HelpDepth::usual),
                                  help<BenchConfig>(HelpDepth::usual), help<InspectConfig>(HelpDepth::usual)}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 112U) << line;
  }
}

TEST(Help, names_are_unique_and_complete) {
  for (const std::string& text :
       {names<TrainConfig>(), names<EvaluateConfig>(), names<BenchConfig>(), names<InspectConfig>()}) {
    std::istringstream lines(text);
    std::set<std::string> seen;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(line.rfind("--", 0), 0U) << line;
      EXPECT_TRUE(seen.insert(line).second) << "two options " << line;
    }
    EXPECT_TRUE(seen.count("--config") == 1 && seen.count("--model") + seen.count("--checkpoint") > 0) << text;
  }
}

}  // namespace
}  // namespace convoy
