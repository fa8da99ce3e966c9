// SPDX-License-Identifier: Apache-2.0
#include "config/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

#include "config/effects.hpp"
#include "config/options.hpp"
#include "core/errors.hpp"
#include "options/command_line.hpp"

namespace convoy {
namespace {

enum class Defaults : bool { as_lines, as_comments };

/// The options most used: --help shows these, and all of a command's own group.
constexpr std::array first_day{"config",     "data",         "synthetic",  "image-size",  "model",
                               "batch-size", "global-batch", "epochs",     "seed",        "dry-run",
                               "optimizer",  "weight-decay", "lr",         "lr-schedule", "warmup-epochs",
                               "sync",       "augment",      "flip",       "workers",     "resume",
                               "weights",    "output-dir",   "time-limit", "device",      "precision"};

/// What --help TOPIC calls headings; others are their own topic, in small letters.
constexpr std::array<std::pair<const char*, const char*>, 15> headings{{{"Data set", "data"},
                                                                        {"Network input", "data"},
                                                                        {"Order", "data"},
                                                                        {"Augmentation", "augmentation"},
                                                                        {"Network", "model"},
                                                                        {"Batches and length", "length"},
                                                                        {"Optimiser", "optimizer"},
                                                                        {"Learning rate", "lr"},
                                                                        {"Moving average of the weights", "ema"},
                                                                        {"Ranks and averaging", "ranks"},
                                                                        {"Stalls", "ranks"},
                                                                        {"Checkpoints", "checkpoints"},
                                                                        {"Time limit", "checkpoints"},
                                                                        {"General", "config"},
                                                                        {"Plan", "plan"}}};

std::string topic_of(std::string title) {
  for (const auto& [heading, topic] : headings)
    if (title == heading) return topic;
  for (char& c : title) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return title;
}

/// Leaves the groups of a topic, or else the options whose names hold the word.
void keep_topic(std::vector<OptionGroup>& groups, const std::string& topic) {
  const auto is_topic = [&](const OptionGroup& group) { return topic_of(group.title) == topic; };
  if (std::any_of(groups.begin(), groups.end(), is_topic)) {
    std::erase_if(groups, [&](const OptionGroup& group) { return !is_topic(group); });
    return;
  }
  const auto holds = [&](const std::string& name) { return name.find(topic) != std::string::npos; };
  for (OptionGroup& group : groups)
    std::erase_if(group.options, [&](const Option& option) {
      return !holds(option.name) && std::none_of(option.aliases.begin(), option.aliases.end(), holds);
    });
}

/// `own`: the group that only this command has; training is made of groups that others share.
void keep_first_day(std::vector<OptionGroup>& groups, std::size_t own) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (g == own) continue;
    std::erase_if(groups[g].options, [](const Option& option) {
      return std::find(first_day.begin(), first_day.end(), option.name) == first_day.end();
    });
  }
}

/// As it is said again elsewhere.
std::string value_of(const Option& option, Defaults defaults) {
  std::string value = option.print();
  if (defaults == Defaults::as_lines || !option.is_path() || value.empty() || value == "auto") return value;
  std::error_code failed;
  return std::filesystem::absolute(value, failed).lexically_normal().string();
}

std::string print(const TrainConfig& config, Defaults defaults_as) {
  TrainConfig copy = config, plain;  // options are bound to fields they may write
  const auto defaults = options_of(plain);
  std::string text;
  for (std::size_t g = 0; const auto& group : options_of(copy)) {
    std::string lines;
    for (std::size_t i = 0; const auto& option : group.options) {
      const std::string value = value_of(option, defaults_as);
      // A file is refused where it gives what has no effect.
      const bool idle =
          effect_of(config, option.name).mistake == Mistake::anywhere && value == defaults[g].options[i].print();
      if (option.place == Place::anywhere && !value.empty() && !idle)
        lines += fmt::format("{}{} = {}\n",
                             defaults_as == Defaults::as_comments && config.said.count(option.name) == 0 ? "# " : "",
                             option.name, ini_value(value));
      ++i;
    }
    ++g;
    if (!lines.empty()) text += fmt::format("# {}\n{}", group.title, lines);
  }
  for (const PhaseConfig& phase : config.phases) {
    const RatePhase& rate = phase.rate;
    text += fmt::format("[phase.{}]\nepochs = {}:{}\n", phase.number, rate.begin_epoch, rate.end_epoch);
    if (phase.has_rate) text += fmt::format("lr = {}:{}\n", rate.from, rate.to);
    PhaseConfig fields = phase, unset;
    const auto given = options_of(fields), usual = options_of(unset);
    for (std::size_t i = 0; i < given[0].options.size(); ++i) {
      const std::string value = value_of(given[0].options[i], defaults_as);
      if (value != usual[0].options[i].print())
        text += fmt::format("{} = {}\n", given[0].options[i].name, ini_value(value));
    }
  }
  return text;
}

}  // namespace

std::string to_ini(const TrainConfig& config) { return print(config, Defaults::as_lines); }
std::string to_ini_of_words(const TrainConfig& config) { return print(config, Defaults::as_comments); }

std::map<std::string, std::string> hyperparameters(const TrainConfig& config) {
  constexpr std::array decisive{"model",        "optimizer", "lr",   "batch-size", "global-batch", "epochs",
                                "weight-decay", "precision", "seed", "sync",       "augment"};
  TrainConfig copy = config;  // options are bound to fields they may write
  std::map<std::string, std::string> values;
  for (const auto& group : options_of(copy))
    for (const Option& option : group.options) {
      const bool decides = std::find(decisive.begin(), decisive.end(), option.name) != decisive.end();
      const bool said = config.said.count(option.name) > 0 && option.place == Place::anywhere && !option.is_path();
      const std::string value = option.print();
      if ((decides || said) && !value.empty()) values[option.name] = value;
    }
  return values;
}

std::string option_help(std::vector<OptionGroup> groups, bool first_is_own, HelpDepth depth, const std::string& topic) {
  std::vector<std::string> topics;
  for (const OptionGroup& group : groups) {
    std::string each = topic_of(group.title);
    if (std::find(topics.begin(), topics.end(), each) == topics.end()) topics.push_back(std::move(each));
  }
  const std::string known = fmt::format("{}", fmt::join(topics, ", "));
  if (!topic.empty()) {
    keep_topic(groups, topic);
    std::string text = option_help(groups, HelpDepth::all);
    if (text.empty()) fail(Exit::usage, "no topic, option or word of an option is '{}'; topics: {}", topic, known);
    return text;
  }
  if (depth == HelpDepth::usual) keep_first_day(groups, first_is_own ? 0 : groups.size());
  std::string config_path;
  groups.insert(groups.begin(), general_options(config_path));
  return option_help(groups, depth) + "\nMore help:\n" +
         help_lines("    --help TOPIC", "all options about one of these, or whose names hold a word: " + known) +
         help_lines("    --help-all", "all options, with other programs' names for them");
}

std::string all_option_names(const std::vector<OptionGroup>& groups) {
  return "--config\n--help\n--help-all\n" + option_names(groups);
}

}  // namespace convoy
