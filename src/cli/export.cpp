// SPDX-License-Identifier: Apache-2.0
#include "infer/export.hpp"

#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"

namespace convoy {

Exit export_command(const Words& words) {
  write_output(export_model(parse_export(words)) + "\n");
  return Exit::ok;
}

}  // namespace convoy
