// SPDX-License-Identifier: Apache-2.0
#include "options/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iterator>
#include <sstream>

#include "core/errors.hpp"
#include "core/text.hpp"

namespace convoy {
namespace {

namespace po = boost::program_options;

po::options_description describe(const Names& names) {
  po::options_description known;
  for (const auto& [name, entry] : names.entries()) {
    const std::string spelled = name.size() == 1 ? "," + name : name;
    if (entry.option->is_switch()) {
      known.add_options()(spelled.c_str(), "");
      continue;
    }
    auto* value = po::value<std::string>();
    if (!entry.option->implied.empty()) value->implicit_value(entry.option->implied);
    known.add_options()(spelled.c_str(), value, "");
  }
  return known;
}

std::string without_dashes(const std::string& key) {
  const auto begin = key.find_first_not_of('-');
  return begin == std::string::npos ? "" : key.substr(begin);
}

std::string as_typed(const std::string& name) { return (name.size() == 1 ? "-" : "--") + name; }

/// `unknown`: names without dashes, at least one.
[[noreturn]] void fail_unknown(const std::string& command, const Names& names,
                               const std::vector<std::string>& unknown) {
  if (unknown.size() == 1) {
    const std::string hint = names.hint(unknown.front(), "--");
    fail(Exit::usage, "'{}' has no option '{}'{}{} See '{} --help'", command, as_typed(unknown.front()), hint,
         hint.ends_with('?') ? "" : ".", command);
  }
  std::string list;
  for (const std::string& name : unknown) {
    const std::string hint = names.hint(name, "--");
    list += fmt::format("{}'{}'{}", list.empty() ? "" : ", ", as_typed(name),
                        hint.empty() ? "" : fmt::format(" ({})", hint.substr(2)));
  }
  fail(Exit::usage, "'{}' has none of these options: {}. See '{} --help'", command, list, command);
}

[[noreturn]] void fail_missing(const std::string& shown, const std::string& allowed) {
  fail(Exit::usage, "option '{}' needs a value{}", shown, allowed.empty() ? "" : " (allowed: " + allowed + ")");
}

std::vector<po::option> tokens_of(const std::string& command, const Names& names,
                                  const std::vector<std::string>& words) {
  std::vector<std::string> spelled;
  for (const auto& word : words) {
    const bool is_long = word.rfind("--", 0) == 0;
    const auto end = is_long ? std::min(word.find('='), word.size()) : 0;
    spelled.push_back(with_hyphens(word.substr(0, end)) + word.substr(end));
  }
  // No allow_guessing: an abbreviation of today would change its meaning with tomorrow's option.
  const int style = po::command_line_style::allow_long | po::command_line_style::allow_short |
                    po::command_line_style::long_allow_adjacent | po::command_line_style::long_allow_next |
                    po::command_line_style::short_allow_adjacent | po::command_line_style::short_allow_next |
                    po::command_line_style::allow_dash_for_short;
  const auto known = describe(names);
  try {
    return po::command_line_parser(spelled).options(known).style(style).allow_unregistered().run().options;
  } catch (const po::invalid_command_line_syntax& e) {
    const std::string name = without_dashes(e.get_option_name());
    const auto* entry = names.find(name);
    const std::string shown = as_typed(name);
    if (entry != nullptr && entry->option->is_switch()) {
      fail(Exit::usage, "'{}' is a switch and takes no value; use '--{}' or '--no-{}'", shown, entry->option->name,
           entry->option->name);
    }
    fail_missing(shown, entry == nullptr ? "" : entry->option->allowed);
  } catch (const po::error& e) {
    fail(Exit::usage, "cannot read the command line ({}); see '{} --help'", e.what(), command);
  }
}

}  // namespace

Names::Names(const std::vector<OptionGroup>& groups, Advice advice) : advice_(std::move(advice)) {
  for (const auto& group : groups) {
    for (const auto& option : group.options) {
      add(option, option.name);
      if (option.letter != 0) add(option, std::string(1, option.letter));
      for (const auto& alias : option.aliases) add(option, alias);
    }
  }
}

void Names::add(const Option& option, const std::string& name) {
  bool fresh = entries_.emplace(name, Entry{&option, false}).second;
  if (option.is_switch() && name.size() > 1) {
    fresh = entries_.emplace("no-" + name, Entry{&option, true}).second && fresh;
  }
  require(fresh, ("two options are called " + name).c_str());
}

const Names::Entry* Names::find(const std::string& name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

bool Names::knows_options_of(const std::string& advice) const {
  bool elsewhere = false;  // within 'convoy ...'
  for (std::size_t at = 0; at < advice.size(); ++at) {
    const std::string_view rest = std::string_view(advice).substr(at);
    if (rest.front() == '\'') elsewhere = rest.starts_with("'convoy");
    if (elsewhere || !rest.starts_with("--")) continue;
    const auto end = std::min(advice.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at), advice.size());
    if (find(advice.substr(at + 2, end - at - 2)) == nullptr) return false;
    at = end - 1;
  }
  return true;
}

std::string Names::hint(const std::string& name, const char* dashes) const {
  // Advice about training says nothing to a command without these options, and a likeness would be chance.
  if (const std::string advice = advice_ ? advice_(name) : ""; !advice.empty())
    return knows_options_of(advice) ? "; " + advice : "";
  if (const auto dot = name.rfind('.'); dot != std::string::npos && dot + 1 < name.size()) {  // FFCV's `lr.lr`
    const std::string rest = name.substr(dot + 1);
    const Entry* entry = find(rest);
    return entry == nullptr ? hint(rest, dashes) : fmt::format("; did you mean '{}{}'?", dashes, entry->option->name);
  }
  constexpr std::size_t most = 4;
  std::vector<std::string> documented, others;
  for (const auto& [known, entry] : entries_) {
    if (known.size() == 1 || entry.option->visibility == Visibility::hidden) continue;
    (known == entry.option->name ? documented : others).push_back(known);
  }
  const auto those = [&](const std::vector<std::string>& from, const auto& fits) {
    std::vector<std::string> found;
    std::copy_if(from.begin(), from.end(), std::back_inserter(found), fits);
    return found;
  };
  std::vector<std::string> all = documented;
  all.insert(all.end(), others.begin(), others.end());  // of equals the first is taken
  std::vector<std::string> meant =
      those(documented, [&](const std::string& known) { return known == name + 's' || known + 's' == name; });
  if (meant.empty()) meant = those(documented, [&](const std::string& known) { return known.starts_with(name + '-'); });
  if (meant.empty() && name.size() > 2)
    meant = those(documented, [&](const std::string& known) { return known.starts_with(name); });
  if (meant.empty()) {
    if (std::string typed = nearest(name, all); !typed.empty()) meant.push_back(std::move(typed));
  }
  if (meant.empty() && name.size() > 2)
    meant = those(documented, [&](const std::string& known) {
      return known.ends_with('-' + name) || known.find('-' + name + '-') != std::string::npos;
    });
  if (meant.empty() || meant.size() > most) return "";
  std::string text;
  for (const auto& each : meant) text += fmt::format("{}'{}{}'", text.empty() ? "" : " or ", dashes, each);
  return fmt::format("; did you mean {}?", text);
}

CommandLine read_command_line(const std::string& command, const Names& names, const std::vector<std::string>& words) {
  CommandLine line;
  std::vector<std::string> unknown;
  for (const auto& token : tokens_of(command, names, words)) {
    if (token.position_key >= 0) {
      line.positional.push_back(token.value.front());
      continue;
    }
    const std::string name = without_dashes(token.string_key);
    const auto* entry = names.find(name);
    if (token.unregistered || entry == nullptr) {
      if (std::find(unknown.begin(), unknown.end(), name) == unknown.end()) unknown.push_back(name);
      continue;
    }
    const Option& option = *entry->option;
    const std::string shown = as_typed(name);
    if (option.is_switch()) {
      line.assignments.push_back({option.name, entry->negated ? "false" : "true", shown});
      continue;
    }
    const std::string value = token.value.empty() ? option.implied : token.value.front();
    const bool is_next_option = token.original_tokens.size() > 1 && value.rfind("--", 0) == 0 &&
                                names.find(without_dashes(with_hyphens(value.substr(0, value.find('='))))) != nullptr;
    if (is_next_option) fail_missing(shown, option.allowed);
    line.assignments.push_back({option.name, value, fmt::format("{} {}", shown, value)});
  }
  if (!unknown.empty()) fail_unknown(command, names, unknown);
  return line;
}

void allow_positional(const std::string& command, const std::vector<std::string>& positional, std::size_t most) {
  if (positional.size() <= most) return;
  fail(Exit::usage, "'{}' can't use '{}' (an option's name without --, or one path too many); see '{} --help'", command,
       positional[most], command);
}

void set_option(const Option& option, const Assignment& given) {
  try {
    if (given.value.empty()) throw BadValue("is empty");
    option.set(given.value);
  } catch (const BadValue& e) {
    std::string remedy = option.allowed.empty() ? "" : "; allowed: " + option.allowed;
    for (const ForeignValue& one : option.foreign)
      if (is_pattern_of(one.value, given.value)) remedy = "; " + one.hint + remedy;
    fail(Exit::usage, "{} ('{}' {}){}", given.origin, given.value, e.what(), remedy);
  }
}

void set_options(const std::vector<OptionGroup>& groups, const std::map<std::string, Assignment>& last) {
  std::string problems;
  for (const auto& group : groups) {
    for (const auto& option : group.options) {
      const auto at = last.find(option.name);
      if (at == last.end()) continue;
      try {
        set_option(option, at->second);
      } catch (const Error& e) {
        problems += (problems.empty() ? "" : "; and ") + std::string(e.what());
      }
    }
  }
  if (!problems.empty()) fail(Exit::usage, "{}", problems);
}

namespace {

/// Where the string in double quotes that begins at `begin` has its last one; npos: there is none, or more than a
/// comment follows.
std::size_t end_of_quoted(const std::string& line, std::size_t begin) {
  for (std::size_t at = begin + 1; at < line.size(); ++at) {
    if (line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      const std::string rest = trimmed(line.substr(at + 1));
      return rest.empty() || rest.front() == '#' ? at : std::string::npos;
    }
  }
  return std::string::npos;
}

/// Of `key = "value"  # comment`; npos: the value has no quotes.
std::size_t end_of_quoted_value(const std::string& line) {
  const auto equals = line.find('=');
  if (equals == std::string::npos || line.find('#') < equals) return std::string::npos;
  const auto begin = line.find_first_not_of(" \t", equals + 1);
  return begin != std::string::npos && line[begin] == '"' ? end_of_quoted(line, begin) : std::string::npos;
}

/// `value`: with both quotes.
std::string unquoted(const std::string& value) {
  std::string text;
  for (std::size_t at = 1; at + 1 < value.size(); ++at) {
    const char next = value[at] == '\\' && at + 2 < value.size() ? value[at + 1] : '\0';
    const bool escape = next == '\\' || next == '"' || next == 'n' || next == 'r';
    text += !escape ? value[at] : next == 'n' ? '\n' : next == 'r' ? '\r' : next;
    if (escape) ++at;
  }
  return text;
}

}  // namespace

std::string ini_value(const std::string& value) {
  if (value == trimmed(value) && value.find_first_of("#\n\r") == std::string::npos && !value.starts_with('"') &&
      !value.starts_with('\''))
    return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') quoted += '\\';
    if (c == '\n' || c == '\r') {
      quoted += c == '\n' ? "\\n" : "\\r";
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::vector<IniLine> ini_lines(const std::string& text) {
  std::vector<IniLine> found;
  std::istringstream lines(text);
  std::string section;
  int number = 0;
  for (std::string raw; std::getline(lines, raw);) {
    ++number;
    const auto quote = end_of_quoted_value(raw);
    std::string line = trimmed(raw.substr(0, quote == std::string::npos ? raw.find('#') : quote + 1));
    if (line.empty() || line.front() == ';') continue;
    const auto equals = line.find('=');
    const bool indented = raw.front() == ' ' || raw.front() == '\t';
    if (line.front() == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
      found.push_back({number, section, "", "", std::move(line), indented});
    } else if (equals == std::string::npos) {
      found.push_back({number, section, "", "", std::move(line), indented});
    } else {
      const std::string value = trimmed(line.substr(equals + 1));
      found.push_back({number, section, trimmed(line.substr(0, equals)),
                       quote == std::string::npos ? value : unquoted(value), std::move(line), indented,
                       quote != std::string::npos});
    }
  }
  return found;
}

std::string with_hyphens(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace convoy
