// SPDX-License-Identifier: Apache-2.0
// Boost.Program_options under one roof: words become assignments of texts to names, then values of fields.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "options/option.hpp"

namespace convoy {

struct Assignment {
  std::string name = {};  ///< documented name; in a section: the key
  std::string value = {};
  std::string origin = {};  ///< `--wd 3` or `tiny.cfg:12: wd = 3`, for messages
  int phase = 0;            ///< [phase.N] of a configuration file; 0: none
};

struct CommandLine {
  std::vector<Assignment> assignments;
  std::vector<std::string> positional;
};

/// All names that lead to an option. The groups must outlive it.
class Names {
 public:
  struct Entry {
    const Option* option = nullptr;
    bool negated = false;  ///< the --no- form of a switch
  };
  /// What to do instead of giving a name that no option has; empty: nothing is known of it. Options of another command
  /// stand in quotes with it, as in `use 'convoy train --weights PATH'`.
  using Advice = std::function<std::string(const std::string& name)>;

  explicit Names(const std::vector<OptionGroup>& groups, Advice advice = {});
  const Entry* find(const std::string& name) const;
  /// `; did you mean '--lr'?` or nothing: the advice, or nothing if that names an option that this command lacks. If
  /// there is no advice: the option behind a section and a dot, the same word but for an s, options that begin with it,
  /// one that was misspelt, options that hold it as a word.
  std::string hint(const std::string& name, const char* dashes) const;
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  void add(const Option& option, const std::string& name);
  bool knows_options_of(const std::string& advice) const;
  std::map<std::string, Entry> entries_;
  Advice advice_;
};

/// `command`: as users type it, for messages. Looks at no values. Throws Error(usage) for unknown options (all, each
/// with what was probably meant), a missing value, a value given to a switch.
CommandLine read_command_line(const std::string& command, const Names& names, const std::vector<std::string>& words);
/// Throws Error(usage) for more words without a name than that.
void allow_positional(const std::string& command, const std::vector<std::string>& positional, std::size_t most);

/// Throws Error(usage) that names origin, value, and what is allowed.
void set_option(const Option& option, const Assignment& given);
/// The last assignment of each name; options are set in the order of their table. One Error(usage) names all wrong
/// values.
void set_options(const std::vector<OptionGroup>& groups, const std::map<std::string, Assignment>& last);

/// A line `key = value` of an INI text; key is empty for a line without '='.
struct IniLine {
  int number = 0;       ///< from 1
  std::string section;  ///< `phase.1`; empty: before the first
  std::string key, value;
  std::string text;  ///< without comments and white space around it
  bool indented = false;
  bool quoted = false;  ///< the value stood in double quotes
};
/// `#`, and `;` at the beginning of a line, start a comment. Headers are lines of their own: section, neither key nor
/// value. A value may stand in double quotes, as ini_value() writes it.
std::vector<IniLine> ini_lines(const std::string& text);
/// The value as ini_lines() reads it back: in double quotes, with \\, \", \n and \r, if it holds '#', a line end, or
/// blanks at its ends, or begins with a quote.
std::string ini_value(const std::string& value);

std::string with_hyphens(std::string name);

}  // namespace convoy
