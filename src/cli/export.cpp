// SPDX-License-Identifier: Apache-2.0
#include "infer/export.hpp"

#include "cli/command.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"

namespace convoy {

namespace {

Exit run_export(const Words& words) {
  write_output(export_model(parse_export(words)) + "\n");
  return Exit::ok;
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .overview = {"export PATH -o FILE", "weights as safetensors, ONNX or pth"},
      .usage = "convoy export PATH --output FILE [options]",
      .text =
          "Writes the weights of a checkpoint for other programs: safetensors and pth under torchvision's names, or an ONNX\n"
          "graph. PATH is a checkpoint file, its folder or a run directory (its best checkpoint).",
      .see_options = see_options<ExportConfig>,
      .alone = run_export};
}

}  // namespace convoy
