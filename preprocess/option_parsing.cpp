// SPDX-License-Identifier: Apache-2.0
#include "preprocess/option_parsing.hpp"

#include <sstream>
#include <stdexcept>

#include "core/errors.hpp"
#include "core/text.hpp"

namespace convoy::preparation {
namespace {

namespace po = boost::program_options;

/// A time as text, read when it is stored.
po::typed_value<std::string>* time_value(double& to, const char* option, double (*parse)(const std::string&)) {
  return po::value<std::string>()->notifier([&to, option, parse](const std::string& text) {
    try {
      to = parse(text);
    } catch (const std::invalid_argument& problem) {
      fail(Exit::usage, "bad value for {} ('{}': {}); see --help", option, text, problem.what());
    }
  });
}

}  // namespace

void add_time_options(po::options_description& options, TimeLimit& limit) {
  auto add = options.add_options();
  add("end-time", time_value(limit.end_time, "--end-time", parse_end_time)->value_name("TIME"),
      "stop before this time (exit 75): seconds since 1970, local 2026-11-28T14:03:07, or NONE");
  add("time-limit", time_value(limit.limit_seconds, "--time-limit", parse_duration)->value_name("DURATION"),
      "stop this long after the start (exit 75): seconds, HH:MM:SS, D-HH:MM:SS, 90m, 2h");
  add("end-margin", po::value(&limit.margin_seconds)->default_value(15, "15")->value_name("S"),
      "stop this many seconds before the limit");
}

void add_stall_options(po::options_description& options, StallLimits& deadline) {
  auto add = options.add_options();
  add("stall-warning-seconds", po::value(&deadline.warn_seconds)->default_value(600, "600")->value_name("S"),
      "warn when a rank waits this many seconds for the others; 0: never");
  add("stall-abort-seconds", po::value(&deadline.abort_seconds)->default_value(7200, "7200")->value_name("S"),
      "give up (exit 5) after this many seconds; 0: never");
}

std::string text_of(const po::options_description& options) {
  std::ostringstream text;
  text << options;
  return text.str();
}

bool parse_options(const po::options_description& options, const std::vector<std::string>& arguments,
                   const char* positional) {
  po::positional_options_description places;
  if (positional != nullptr) places.add(positional, 1);
  try {
    po::variables_map values;
    // No guessed abbreviations: a typing error must not become another option.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(options).positional(places).style(style).run(), values);
    po::notify(values);
    return values.count("help") > 0;
  } catch (const po::unknown_option& e) {
    std::vector<std::string> names;
    for (const auto& option : options.options()) names.push_back(option->long_name());
    std::string word = e.get_option_name();
    word.erase(0, word.find_first_not_of('-'));
    const std::string best = nearest(word, names);
    fail(Exit::usage, "unknown option '--{}'; {}", word,
         best.empty() ? "see --help" : fmt::format("did you mean --{}? See --help", best));
  } catch (const po::too_many_positional_options_error&) {
    fail(Exit::usage, "too many arguments (an option without its '--'?); see --help");
  } catch (const po::error& e) {
    fail(Exit::usage, "bad command line ({}); see --help", e.what());
  }
}

void require_between(const char* option, Index value, Index low, Index high) {
  if (value >= low && value <= high) return;
  fail(Exit::usage, "bad value for {} ({}); give a number from {} to {}", option, value, low, high);
}

}  // namespace convoy::preparation
