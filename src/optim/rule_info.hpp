// SPDX-License-Identifier: Apache-2.0
// The rules as data, for those who need no formula.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "optim/optimisers.hpp"

namespace convoy {

struct RuleInfo {
  const char *name, *title;
  RuleNames aliases;
  std::span<const char* const> slots;
  std::span<const RuleOption> options;
  Recipes recipes;

  /// Null: the rule has no option of this name.
  const RuleOption* find(const std::string& option) const;
};
RuleInfo info_of(Rule rule);

/// The options of all rules, each once.
std::vector<RuleOption> options_of_rules();

/// A value for each option of each rule, by name: at first the defaults.
using RuleSettings = std::map<std::string, double>;
RuleSettings usual_settings();
/// The rule's own part of the settings.
OptionValues values_of(Rule rule, const RuleSettings& settings);

/// `sgd, nesterov or lars`: which rules have the option.
std::string rules_with(const std::string& option);

}  // namespace convoy
