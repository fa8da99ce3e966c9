// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect.hpp"

#include <fmt/format.h>

#include "cli/about.hpp"
#include "cli/command.hpp"
#include "config/parse.hpp"

namespace convoy {

Exit inspect_command(const Words& words) {
  const InspectConfig config = parse_inspect(words);
  if (config.what == "data") {
    fmt::print("{}", inspect_data(config.path));
  } else if (config.what == "checkpoint") {
    fmt::print("{}", inspect_checkpoint(config.path));
  } else if (config.what == "plan") {
    fmt::print("{}", inspect_plan(config));
  } else {
    fmt::print("{}", version_text());
  }
  return Exit::ok;
}

}  // namespace convoy
