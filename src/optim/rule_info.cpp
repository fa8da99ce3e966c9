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
    return RuleInfo{R::name, R::title, R::aliases, R::slots, R::options, R::recipes};
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
  std::string text, last;
  for (const Rule rule : all_rules) {
    if (info_of(rule).find(option) == nullptr) continue;
    if (!last.empty()) text += (text.empty() ? "" : ", ") + last;
    last = info_of(rule).name;
  }
  return text.empty() ? last : text + " or " + last;
}

}  // namespace convoy
