// SPDX-License-Identifier: Apache-2.0
#include "options/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// Of `auto|N` the words that can be typed as they stand: `auto`.
std::vector<std::string> choices_of(const std::string& value) {
  std::vector<std::string> found;
  if (value.find('|') == std::string::npos) return found;
  std::istringstream words(value);
  for (std::string word; std::getline(words, word, '|');)
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-.") == std::string::npos) found.push_back(word);
  return found;
}

/// The names of a command's options as they are typed.
std::string option_words(const CompletedCommand& command) {
  std::string words;
  for (const CompletedOption& option : command.options) {
    words += " --" + option.name;
    if (option.value.empty() && option.name != "help" && option.name != "help-all") words += " --no-" + option.name;
  }
  return words.empty() ? words : words.substr(1);
}

/// A function's name.
std::string identifier(std::string program) {
  std::replace(program.begin(), program.end(), '-', '_');
  return '_' + program;
}

/// Branches of `case $before in` for the options that take a value.
std::string bash_values(const CompletedCommand& command) {
  std::string text, paths, others;
  for (const CompletedOption& option : command.options) {
    if (option.value.empty()) continue;
    if (!option.choices.empty()) {
      text += fmt::format("        --{}) words='{}' ;;\n", option.name, fmt::join(option.choices, " "));
    } else {
      std::string& list = option.is_path ? paths : others;
      list += (list.empty() ? "--" : " | --") + option.name;
    }
  }
  if (!paths.empty()) text += fmt::format("        {}) kind=path ;;\n", paths);
  if (!others.empty()) text += fmt::format("        {}) return ;;\n", others);
  return text;
}

std::string bash_script(const std::string& program, const std::vector<CompletedCommand>& commands) {
  const std::string function = identifier(program);
  std::string names, cases;
  for (const CompletedCommand& command : commands) {
    names += command.name + ' ';
    cases += fmt::format(
        "    {})\n      options='{}' words='{}'\n      case $before in\n{}        *) kind=any ;;\n      esac ;;\n",
        command.name, option_words(command), fmt::join(command.words, " "), bash_values(command));
  }
  return fmt::format(R"(# Completes the command lines of {0} in bash; made by '{0} completion bash'.
{1}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before='' options='' words='' kind=choice
  COMPREPLY=()
  if [ "$COMP_CWORD" -le 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{2}--help --version' -- "$word")
    return
  fi
  before=${{COMP_WORDS[COMP_CWORD - 1]}}
  # The shell cuts --name=value at the equals sign.
  if [ "$word" = = ]; then
    word=''
  elif [ "$before" = = ]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case ${{COMP_WORDS[1]}} in
{3}    *) return ;;
  esac
  if [ "$kind" = any ]; then
    case $word in -*) words=$options ;; *) kind=path ;; esac
  fi
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$word" || true
    if [ "$kind" = path ]; then compgen -f -- "$word"; fi
  )
  if [ "$kind" = path ]; then compopt -o filenames 2>/dev/null || true; fi
}}
complete -F {1} {0}
)",
                     program, function, names, cases);
}

/// A text in a specification of _arguments, which stands in single quotes.
std::string zsh_text(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted;
}

std::string zsh_option(const CompletedOption& option) {
  std::string value;
  if (!option.choices.empty()) {
    value = fmt::format("({})", fmt::join(option.choices, " "));
  } else if (option.is_path) {
    value = "_files";
  }
  if (!option.value.empty())
    return fmt::format(" \\\n        '--{}=[{}]:{}:{}'", option.name, zsh_text(option.help), zsh_text(option.value),
                       value);
  std::string text = fmt::format(" \\\n        '--{}[{}]'", option.name, zsh_text(option.help));
  if (option.name != "help" && option.name != "help-all")
    text += fmt::format(" \\\n        '--no-{}[not\\: {}]'", option.name, zsh_text(option.help));
  return text;
}

std::string zsh_script(const std::string& program, const std::vector<CompletedCommand>& commands) {
  std::string names, cases;
  for (const CompletedCommand& command : commands) {
    names += fmt::format("        '{}:{}'\n", command.name, zsh_text(command.text));
    std::string options;
    for (const CompletedOption& option : command.options) options += zsh_option(option);
    const std::string positional =
        command.words.empty() ? "_files" : fmt::format("{{ compadd {}; _files }}", fmt::join(command.words, " "));
    cases += fmt::format("      {})\n        _arguments{} \\\n        '*:argument:{}' ;;\n", command.name, options,
                         positional);
  }
  return fmt::format(R"(#compdef {0}
# Completes the command lines of {0} in zsh; made by '{0} completion zsh'.
compdef {1} {0}
{1}() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands
      commands=(
{2}      )
      _describe command commands ;;
    argument)
      case $line[1] in
{3}      esac ;;
  esac
}}
# Sourced: it has been defined. Loaded by name: it is called.
if [ "$funcstack[1]" = {1} ]; then {1} "$@"; fi
)",
                     program, identifier(program), names, cases);
}

}  // namespace

CompletedCommand completed_command(std::string name, std::string text, std::vector<std::string> words,
                                   const std::vector<OptionGroup>& groups) {
  CompletedCommand command{std::move(name), std::move(text), std::move(words), {}};
  for (const OptionGroup& group : groups)
    for (const Option& option : group.options)
      if (option.visibility == Visibility::shown)
        command.options.push_back({option.name, option.help, option.value, choices_of(option.value), option.is_path()});
  command.options.push_back({.name = "help", .help = "the options most used"});
  command.options.push_back({.name = "help-all", .help = "all options"});
  return command;
}

std::string completion_script(const std::string& shell, const std::string& program,
                              const std::vector<CompletedCommand>& commands) {
  if (shell == "bash") return bash_script(program, commands);
  if (shell == "zsh") return zsh_script(program, commands);
  fail(Exit::usage, "no completion for '{}' is known; use '{} completion bash' or 'zsh'", shell, program);
}

}  // namespace convoy
