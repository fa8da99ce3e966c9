// SPDX-License-Identifier: Apache-2.0
#include "options/help.hpp"

#include <fmt/format.h>

namespace convoy {
namespace {

constexpr std::size_t text_column = 34, line_width = 110;

std::string describe(const Option& option, HelpDepth depth) {
  std::string left = option.letter != 0 ? fmt::format("-{}, ", option.letter) : "    ";
  left += "--" + option.name;
  if (option.is_switch()) left += ", --no-" + option.name;
  if (!option.value.empty()) left += fmt::format(fmt::runtime(option.implied.empty() ? " {}" : "[={}]"), option.value);
  return help_lines(left, option_text(option, depth));
}

}  // namespace

std::string option_text(const Option& option, HelpDepth depth) {
  std::string text = option.help;
  std::string value = option.otherwise.empty() ? option.print() : option.otherwise;
  if (option.is_switch() && option.otherwise.empty()) value = value == "true" ? "on" : "off";
  std::string notes;
  if (!value.empty()) notes += "default: " + value;
  constexpr std::size_t long_list = 60;
  const bool told = option.is_switch() || option.allowed.size() > long_list || option.allowed.empty() ||
                    option.value.find('|') != std::string::npos ||
                    option.help.find(option.allowed) != std::string::npos;
  if (!told) notes += (notes.empty() ? "allowed: " : "; ") + option.allowed;
  if (!notes.empty()) text += " [" + notes + "]";
  if (depth == HelpDepth::all && !option.aliases.empty()) {
    std::string names;
    for (const auto& alias : option.aliases) {
      names += (names.empty() ? "" : ", ") + std::string(alias.size() == 1 ? "-" : "--") + alias;
    }
    text += " (also: " + names + ")";
  }
  return text;
}

std::string help_lines(const std::string& left, const std::string& text) {
  std::string out = "  " + left, word;
  std::size_t column = out.size();
  auto start_line = [&](bool first) {
    if (!first || column + 2 > text_column) {
      out += '\n';
      column = 0;
    }
    out += std::string(text_column - column, ' ');
    column = text_column;
  };
  start_line(true);
  bool line_is_empty = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    word = text.substr(begin, end - begin);
    if (!line_is_empty && column + 1 + word.size() > line_width) {
      start_line(false);
      line_is_empty = true;
    }
    if (!line_is_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    line_is_empty = false;
    begin = end + 1;
  }
  return out + '\n';
}

std::string option_help(const std::vector<OptionGroup>& groups, HelpDepth depth) {
  std::string text;
  for (const auto& group : groups) {
    std::string lines;
    for (const auto& option : group.options) {
      if (option.visibility == Visibility::shown || depth == HelpDepth::all) lines += describe(option, depth);
    }
    if (!lines.empty()) text += '\n' + group.title + ":\n" + lines;
  }
  return text;
}

std::string option_names(const std::vector<OptionGroup>& groups) {
  std::string text;
  for (const auto& group : groups) {
    for (const auto& option : group.options) {
      for (const char* form : {"--", "--no-"}) {
        if (form[2] != 0 && !option.is_switch()) continue;
        text += form + option.name + '\n';
        for (const auto& alias : option.aliases) {
          if (alias.size() > 1) text += form + alias + '\n';
        }
      }
    }
  }
  return text;
}

}  // namespace convoy
