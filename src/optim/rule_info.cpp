// SPDX-License-Identifier: Apache-2.0
#include "optim/rule_info.hpp"

#include <algorithm>
#include <string_view>

namespace convoy {

const RuleOption* RuleInfo::find(const std::string& option) const {
  const auto at = std::find_if(options.begin(), options.end(), [&](const RuleOption& o) { return o.name == option; });
  return at == options.end() ? nullptr : &*at;
}

RuleInfo info_of(Rule rule) {
  return with_optimiser(rule, [](auto chosen) {
    using R = decltype(chosen);
    static_assert(R::options.size() <= max_rule_options);
    return RuleInfo{R::name, R::title, R::note, R::slots, R::options, R::recipes};
  });
}

std::vector<RuleOption> options_of_rules() {
  std::vector<RuleOption> all;
  for (const Rule rule : all_rules) {
    for (const RuleOption& option : info_of(rule).options) {
      const auto same = [&](const RuleOption& o) { return std::string_view(o.name) == option.name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(option);
    }
  }
  return all;
}

RuleSettings usual_settings() {
  RuleSettings settings;
  for (const RuleOption& option : options_of_rules()) settings[option.name] = option.usual;
  return settings;
}

OptionValues values_of(Rule rule, const RuleSettings& settings) {
  OptionValues values;
  std::size_t i = 0;
  for (const RuleOption& option : info_of(rule).options) values.value[i++] = settings.at(option.name);
  return values;
}

std::string rules_with(const std::string& option) {
  std::string text;
  for (const Rule rule : all_rules) {
    const RuleInfo info = info_of(rule);
    if (info.find(option) == nullptr) continue;
    text += (text.empty() ? "--optimizer " : " or ") + std::string(info.name);
    if (*info.note != '\0') text += " (" + std::string(info.note) + ")";
  }
  return text;
}

}  // namespace convoy
