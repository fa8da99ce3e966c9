// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect.hpp"

#include "cli/about.hpp"
#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"

namespace convoy {

Exit inspect_command(const Words& words) {
  const InspectConfig config = parse_inspect(words);
  if (config.what == "data") {
    write_output(inspect_data(config.path));
  } else if (config.what == "checkpoint") {
    write_output(inspect_checkpoint(config.path));
  } else if (config.what == "plan") {
    write_output(inspect_plan(config));
  } else {
    write_output(version_text());
  }
  return Exit::ok;
}

}  // namespace convoy
