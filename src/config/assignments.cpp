// SPDX-License-Identifier: Apache-2.0
#include "config/assignments.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <map>
#include <sstream>

#include "config/foreign_names.hpp"
#include "config/phase_fields.hpp"
#include "core/errors.hpp"
#include "core/text.hpp"

namespace convoy {
namespace {

namespace po = boost::program_options;

std::string with_hyphens(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// All names that lead to an option.
class Names {
 public:
  struct Entry {
    const Option* option = nullptr;
    bool negated = false;  ///< the --no- form of a switch
  };

  explicit Names(const std::vector<OptionGroup>& groups) {
    for (const auto& group : groups) {
      for (const auto& option : group.options) {
        add(option, option.name);
        if (option.letter != 0) add(option, std::string(1, option.letter));
        for (const auto& alias : option.aliases) add(option, alias);
      }
    }
  }
  const Entry* find(const std::string& name) const {
    const auto at = entries_.find(name);
    return at == entries_.end() ? nullptr : &at->second;
  }
  /// `; did you mean '--lr'?` or nothing: what begins with these words, else what was misspelt.
  std::string hint(const std::string& name, const char* dashes) const {
    if (const std::string foreign = foreign_hint(name); !foreign.empty()) return "; " + foreign;
    std::vector<std::string> documented, others, longer;
    for (const auto& [known, entry] : entries_) {
      if (known.size() == 1 || entry.option->visibility == Visibility::hidden) continue;
      (known == entry.option->name ? documented : others).push_back(known);
      if (known == entry.option->name && known.rfind(name + '-', 0) == 0) longer.push_back(known);
    }
    documented.insert(documented.end(), others.begin(), others.end());  // of equals the first is taken
    if (longer.empty()) longer.push_back(nearest(name, documented));
    if (longer.front().empty()) return "";
    std::string text;
    for (const auto& meant : longer) text += fmt::format("{}'{}{}'", text.empty() ? "" : " or ", dashes, meant);
    return fmt::format("; did you mean {}?", text);
  }
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  void add(const Option& option, const std::string& name) {
    bool fresh = entries_.emplace(name, Entry{&option, false}).second;
    if (option.is_switch() && name.size() > 1) {
      fresh = entries_.emplace("no-" + name, Entry{&option, true}).second && fresh;
    }
    require(fresh, ("two options are called " + name).c_str());
  }
  std::map<std::string, Entry> entries_;
};

/// Names that other programs give to what is a command here.
const char* command_for(const std::string& name) {
  static const std::map<std::string, const char*> commands = {
      {"evaluate", "convoy evaluate"},  {"e", "convoy evaluate"},       {"test-only", "convoy evaluate"},
      {"eval-only", "convoy evaluate"}, {"test-io", "convoy bench io"}, {"benchmark", "convoy bench compute"},
  };
  const auto at = commands.find(name);
  return at == commands.end() ? nullptr : at->second;
}

po::options_description describe(const Names& names) {
  po::options_description known;
  auto add = [&known](const std::string& name, bool takes_value) {
    const std::string spelled = name.size() == 1 ? "," + name : name;
    if (takes_value) {
      known.add_options()(spelled.c_str(), po::value<std::string>(), "");
    } else {
      known.add_options()(spelled.c_str(), "");
    }
  };
  for (const auto& [name, entry] : names.entries()) add(name, !entry.option->is_switch());
  add("config", true);
  add("c", true);
  add("cfg-file", true);
  add("config-file", true);
  return known;
}

std::string without_dashes(const std::string& key) {
  const auto begin = key.find_first_not_of('-');
  return begin == std::string::npos ? "" : key.substr(begin);
}

[[noreturn]] void fail_unknown(const std::string& command, const Names& names, const std::string& key) {
  const std::string name = without_dashes(key), shown = name.size() == 1 ? "-" + name : "--" + name;
  if (const char* other = command_for(name)) {
    fail(Exit::usage, "'convoy {}' has no option '{}'; use '{}'", command, shown, other);
  }
  const std::string hint = names.hint(name, "--");
  fail(Exit::usage, "'convoy {}' has no option '{}'{}{} See 'convoy {} --help'", command, shown, hint,
       hint.ends_with('?') ? "" : ".", command);
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
    const std::string shown = name.size() == 1 ? "-" + name : "--" + name;
    if (entry != nullptr && entry->option->is_switch()) {
      fail(Exit::usage, "'{}' is a switch and takes no value; use '--{}' or '--no-{}'", shown, entry->option->name,
           entry->option->name);
    }
    fail_missing(shown, entry == nullptr ? "a file" : entry->option->allowed);
  } catch (const po::error& e) {
    fail(Exit::usage, "cannot read the command line ({}); see 'convoy {} --help'", e.what(), command);
  }
}

struct IniLine {
  std::string key;  ///< in a section `phase.1.lr`
  std::string value;
  std::string origin;  ///< `tiny.cfg:12: lr = 0.1`
};

/// Reads the section header `line` and returns what it puts before a key: `phase.1.`.
std::string section_prefix(const std::string& line, const std::string& origin) {
  const std::string section = trimmed(line.substr(1, line.size() - 2));
  const std::string digits = section.rfind("phase.", 0) == 0 ? section.substr(6) : "";
  const bool numbered = !digits.empty() && digits.size() < 6 && digits.front() != '0' &&
                        digits.find_first_not_of("0123456789") == std::string::npos;
  if (!numbered) fail(Exit::usage, "{} (unknown section); the sections are [phase.1], [phase.2], ...", origin);
  return section + '.';
}

/// The assignments of an INI text, in order. Boost's reader tells no line numbers.
std::vector<IniLine> ini_lines(const std::string& text, const std::string& name) {
  std::vector<IniLine> found;
  std::istringstream lines(text);
  std::string raw, prefix;
  for (int number = 1; std::getline(lines, raw); ++number) {
    const std::string line = trimmed(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    const std::string origin = fmt::format("{}:{}: {}", name, number, line);
    if (line.front() == '[' && line.back() == ']') {
      prefix = section_prefix(line, origin);
      continue;
    }
    const auto equals = line.find('=');
    if (equals == std::string::npos)
      fail(Exit::usage, "{} (neither a comment, a [phase.N] nor 'key = value'); write 'key = value'", origin);
    found.push_back({prefix + trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)), origin});
  }
  return found;
}

Assignment place(const Names& names, const std::string& key, const std::string& value, const std::string& origin) {
  if (key.rfind("phase.", 0) == 0) {
    const auto dot = key.find('.', 6);
    const std::string field = with_hyphens(key.substr(dot + 1));
    const auto& keys = phase_keys();
    if (std::find(keys.begin(), keys.end(), field) == keys.end()) {
      const std::string meant = nearest(field, keys);
      fail(
          Exit::usage,
          "{} (unknown key in a phase){}; a phase has 'epochs', 'lr', 'image-size', 'batch-size', 'global-batch', 'min-random-area', 'rectangular-validation' and 'data'",
          origin, meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
    }
    return {field, value, origin, std::stoi(key.substr(6, dot - 6))};
  }
  const std::string name = with_hyphens(key);
  const auto* entry = names.find(name);
  if (entry == nullptr || entry->negated || name.size() == 1) {
    fail(Exit::usage, "{} (unknown key '{}'){}", origin, key,
         entry != nullptr ? fmt::format("; write '{} = ...'", entry->option->name) : names.hint(name, ""));
  }
  if (entry->option->place == Place::command_line) {
    fail(Exit::usage, "{} (only for the command line); give --{} there", origin, entry->option->name);
  }
  return {entry->option->name, value, origin};
}

/// Does the key belong to the other command alone?
bool is_foreign(const Names& names, const Names& foreign, const std::string& key) {
  if (foreign.entries().empty()) return false;
  if (key.rfind("phase.", 0) == 0) return true;
  const auto* there = foreign.find(with_hyphens(key));
  if (there == nullptr || there->negated || key.size() == 1) return false;
  const auto* here = names.find(there->option->name);
  return here == nullptr || here->option->name != there->option->name;
}

}  // namespace

CommandLine read_command_line(const std::string& command, const std::vector<OptionGroup>& groups,
                              const std::vector<std::string>& words) {
  const Names names(groups);
  CommandLine line;
  for (const auto& token : tokens_of(command, names, words)) {
    if (token.position_key >= 0) {
      line.positional.push_back(token.value.front());
      continue;
    }
    const std::string name = without_dashes(token.string_key);
    if (name == "config" || name == "c" || name == "cfg-file" || name == "config-file") {
      if (!line.config_path.empty()) {
        fail(Exit::usage, "two configuration files are given ('{}' and '{}'); give one", line.config_path,
             token.value.front());
      }
      line.config_path = token.value.front();
      if (line.config_path.empty()) fail(Exit::usage, "option '--config' needs a value (allowed: a file)");
      continue;
    }
    const auto* entry = names.find(name);
    if (token.unregistered || entry == nullptr) fail_unknown(command, names, token.string_key);
    const std::string shown = (name.size() == 1 ? "-" : "--") + name;
    if (entry->option->is_switch()) {
      line.assignments.push_back({entry->option->name, entry->negated ? "false" : "true", shown});
      continue;
    }
    const std::string& value = token.value.front();
    const bool is_next_option = token.original_tokens.size() > 1 && value.rfind("--", 0) == 0 &&
                                names.find(without_dashes(with_hyphens(value.substr(0, value.find('='))))) != nullptr;
    if (is_next_option) fail_missing(shown, entry->option->allowed);
    line.assignments.push_back({entry->option->name, value, fmt::format("{} {}", shown, value)});
  }
  return line;
}

std::vector<Assignment> read_ini(const std::vector<OptionGroup>& groups, const std::string& written,
                                 const std::string& name, const std::vector<OptionGroup>& others) {
  const Names names(groups), foreign(others);
  const std::string text = plain_text(written, name, Exit::usage);
  std::vector<Assignment> assignments;
  std::map<std::pair<int, std::string>, std::string> seen;
  for (const IniLine& line : ini_lines(text, name)) {
    if (is_foreign(names, foreign, line.key)) continue;
    Assignment next = place(names, line.key, line.value, line.origin);
    const auto [first, fresh] = seen.emplace(std::pair(next.phase, next.name), next.origin);
    if (!fresh) fail(Exit::usage, "'{}' is set twice ({}; {}); keep one", next.name, first->second, next.origin);
    assignments.push_back(std::move(next));
  }
  return assignments;
}

}  // namespace convoy
