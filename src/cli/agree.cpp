// SPDX-License-Identifier: Apache-2.0
#include "cli/agree.hpp"

#include "comm/communicator.hpp"
#include "core/log.hpp"

namespace convoy {
namespace {

/// Collective.
std::string read_on_first_rank(Communicator& communicator, const std::string& path) {
  std::string text, problem, code;
  if (communicator.rank() == 0) {
    try {
      text = read_text_file(path);
    } catch (const Error& e) {
      problem = e.what();
      code = std::to_string(static_cast<int>(e.code()));  // stopped: that is no wrong usage
    }
  }
  communicator.broadcast(problem, "state of the configuration file");
  communicator.broadcast(code, "state of the configuration file");
  if (!problem.empty()) fail(static_cast<Exit>(std::stoi(code)), "{}", problem);
  communicator.broadcast(text, "configuration file");
  return text;
}

}  // namespace

template <class Config>
std::optional<Config> agree_on_config(Session& session, const Words& words, Parse<Config> parse) {
  Communicator communicator(session, StallLimits{});
  log::configure(communicator.rank(), communicator.size(), communicator.host());
  try {
    return parse(words, [&](const std::string& path) { return read_on_first_rank(communicator, path); });
  } catch (const Error& e) {
    if (e.code() != Exit::usage) throw;
    if (communicator.rank() == 0) log::report_error(e.what());
    return std::nullopt;
  }
}

template std::optional<TrainConfig> agree_on_config(Session&, const Words&, Parse<TrainConfig>);
template std::optional<EvaluateConfig> agree_on_config(Session&, const Words&, Parse<EvaluateConfig>);
template std::optional<PredictConfig> agree_on_config(Session&, const Words&, Parse<PredictConfig>);
template std::optional<PreflightConfig> agree_on_config(Session&, const Words&, Parse<PreflightConfig>);
template std::optional<BenchConfig> agree_on_config(Session&, const Words&, Parse<BenchConfig>);

std::string quoted(const std::string& command, const Words& words) {
  std::string line = "convoy " + command;
  for (const auto& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"$`\\*?[]{}()<>|&;#~!") == std::string::npos;
    line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace convoy
