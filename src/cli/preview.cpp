// SPDX-License-Identifier: Apache-2.0
#include "infer/preview.hpp"

#include "cli/command.hpp"
#include "config/parse.hpp"

namespace convoy {
namespace {

Exit run_preview(const Words& words) { return preview(parse_preview(words)); }

}  // namespace

Command preview_command() {
  return {
      .name = "preview",
      .overview = {"preview --data DIR", "HTML page of what the network sees after augmentation"},
      .usage = "convoy preview --data DIR [options of convoy train] [-o FILE]",
      .text =
          "Writes one self-contained HTML file: some training images, each as evaluation sees it and as training does in\n"
          "several epochs, with class names. It takes the options and configuration files of 'convoy train'. The images\n"
          "of a column are one batch, and mix-up and cut-mix mix them with each other.",
      .see_options = see_options<PreviewConfig>,
      .alone = run_preview};
}

}  // namespace convoy
