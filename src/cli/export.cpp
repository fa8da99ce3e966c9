// SPDX-License-Identifier: Apache-2.0
#include "infer/export.hpp"

#include "cli/command.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/standard_output.hpp"

namespace convoy {

// Not in the namespace without a name: see_options() finds it where ExportConfig lies.
std::vector<OptionGroup> options_of(ExportConfig& config) {
  OptionGroup group{"Export", {}};
  const auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(text_option("checkpoint", "PATH", config.checkpoint, "checkpoint file, its folder, or a run directory"))
      .also({"weights", "resume"});
  add(choice_option<WeightFormat>(
      "format", config.format,
      {{"safetensors", WeightFormat::safetensors}, {"onnx", WeightFormat::onnx}, {"pth", WeightFormat::pth}},
      "format of the file; default: by its name", {{"pt", WeightFormat::pth}}));
  add(text_option("output", "FILE", config.output, "file to write")).short_form('o');
  add(weight_choice_option(config.choice));
  add(switch_option("with-normalization", config.normalises,
                    "onnx: the graph takes pixels from 0 to 255 and normalises them itself"));
  add(number_option("image-size", "PIXELS", config.image_size, from_to(0, 16384),
                    "onnx: height and width of the input; 0: as in training"))
      .also({"img-size", "input-size"});
  add(overwrite_option(config.overwrite));
  return {std::move(group)};
}

namespace {

/// By the name's ending.
WeightFormat format_of(const std::string& file) {
  if (file.ends_with(".safetensors")) return WeightFormat::safetensors;
  if (file.ends_with(".onnx")) return WeightFormat::onnx;
  if (file.ends_with(".pth") || file.ends_with(".pt")) return WeightFormat::pth;
  fail(Exit::usage, "the name '{}' tells no format; give --format safetensors, onnx or pth", file);
}

ExportConfig parse_export(const Words& words) {
  ExportConfig config;
  take_positional("export", read_words("export", options_of(config), words), "checkpoint", config.checkpoint);
  if (config.checkpoint.empty() || config.output.empty()) {
    fail(Exit::usage, "{}; use 'convoy export PATH --output FILE' with a checkpoint or run directory",
         config.checkpoint.empty() ? "no checkpoint is given" : "no --output is given");
  }
  if (config.format == WeightFormat::automatic) config.format = format_of(config.output);
  if (config.format != WeightFormat::onnx && (config.normalises || config.image_size > 0)) {
    fail(Exit::usage, "only --format onnx has --{} (the others hold no graph); leave it out",
         config.normalises ? "with-normalization" : "image-size");
  }
  return config;
}

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
