// SPDX-License-Identifier: Apache-2.0
#include "options/manual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "options/help.hpp"

namespace convoy {
namespace {

enum class Hyphens : bool { of_prose, of_code };

/// A line as groff prints it: no request, no escape. of_code: minus signs that can be copied into a shell.
std::string escaped(const std::string& line, Hyphens hyphens = Hyphens::of_prose) {
  std::string text;
  if (line.starts_with('.') || line.starts_with('\'')) text = "\\&";
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool option = line[at] == '-' && (hyphens == Hyphens::of_code || line.compare(at, 2, "--") == 0 ||
                                            (at > 0 && line[at - 1] == '-'));
    if (line[at] == '\\') {
      text += "\\e";
    } else {
      if (option) text += '\\';
      text += line[at];
    }
  }
  return text;
}

/// As it stands, line by line.
std::string verbatim(const std::string& text) {
  std::string out = ".nf\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += escaped(line, Hyphens::of_code) + '\n';
  return out + ".fi\n";
}

std::string option_entry(const Option& option) {
  std::string head;
  if (option.letter != 0) head = fmt::format("\\fB\\-{}\\fR, ", option.letter);
  head += fmt::format("\\fB\\-\\-{}\\fR", escaped(option.name, Hyphens::of_code));
  if (option.is_switch()) head += fmt::format(", \\fB\\-\\-no\\-{}\\fR", escaped(option.name, Hyphens::of_code));
  const std::string value = escaped(option.value, Hyphens::of_code);
  if (!option.value.empty())
    head += option.implied.empty() ? fmt::format(" \\fI{}\\fR", value) : fmt::format("[=\\fI{}\\fR]", value);
  return fmt::format(".TP\n{}\n{}\n", head, escaped(option_text(option, HelpDepth::all)));
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

std::string manual_page(const ManualPage& page, const std::vector<OptionGroup>& groups) {
  std::string options;
  for (const OptionGroup& group : groups) {
    std::string entries;
    for (const Option& option : group.options)
      if (option.visibility == Visibility::shown) entries += option_entry(option);
    if (!entries.empty()) options += fmt::format(".SS \"{}\"\n{}", escaped(group.title), entries);
  }
  std::string text = fmt::format(
      ".\\\" Made from the program's tables of options; do not edit.\n.TH \"{}\" 1 \"\" \"{}\" \"Convoy\"\n"
      ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}.SH DESCRIPTION\n{}",
      escaped(capitals(page.name), Hyphens::of_code), page.version, escaped(page.name, Hyphens::of_code),
      escaped(page.summary), verbatim(page.usage), verbatim(page.text));
  if (!options.empty()) text += ".SH OPTIONS\n" + options;
  for (const ManualSection& section : page.sections)
    text += fmt::format(".SH \"{}\"\n{}", capitals(section.title), verbatim(section.text));
  return text + fmt::format(".SH \"SEE ALSO\"\n{}\n", escaped(page.see_also, Hyphens::of_code));
}

}  // namespace convoy
