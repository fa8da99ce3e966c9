// SPDX-License-Identifier: Apache-2.0
// Options of the commands that make files of trained weights.
#include "config/options.hpp"

namespace convoy {
namespace {

/// A switch that has a third state: neither form is given.
Option ema_option(WeightChoice& choice) {
  Option option{
      .name = "ema",
      .help = "take the moving average of the weights (--no-ema: the weights themselves); default: as evaluate does"};
  option.set = [&choice](const std::string& text) {
    choice = read_bool(text) ? WeightChoice::average : WeightChoice::trained;
  };
  option.print = [&choice]() -> std::string {
    switch (choice) {
      case WeightChoice::usual:
        return "";
      case WeightChoice::average:
        return "true";
      case WeightChoice::trained:
        return "false";
    }
    return "";
  };
  return option;
}

Option overwrite_option(bool& overwrite) {
  return switch_option("overwrite", overwrite, "replace an existing file").also({"force"});
}

}  // namespace

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
  add(ema_option(config.choice));
  add(switch_option("with-normalization", config.normalises,
                    "onnx: the graph takes pixels from 0 to 255 and normalises them itself"));
  add(number_option("image-size", "PIXELS", config.image_size, from_to(0, 16384),
                    "onnx: height and width of the input; 0: as in training"))
      .also({"img-size", "input-size"});
  add(overwrite_option(config.overwrite));
  return {std::move(group)};
}

std::vector<OptionGroup> options_of(AverageConfig& config) {
  OptionGroup group{"Average", {}};
  group.options.push_back(text_option("output", "FILE", config.output, "checkpoint to write").short_form('o'));
  group.options.push_back(overwrite_option(config.overwrite));
  return {std::move(group)};
}

}  // namespace convoy
