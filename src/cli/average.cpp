// SPDX-License-Identifier: Apache-2.0
#include "infer/average.hpp"

#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"

namespace convoy {

Exit average_command(const Words& words) {
  write_output(average_models(parse_average(words)) + "\n");
  return Exit::ok;
}

}  // namespace convoy
