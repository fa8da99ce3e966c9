// SPDX-License-Identifier: Apache-2.0
// Trained weights for other programs: docs/weights.md says what the files hold.
#pragma once
#include <string>

#include "infer/host_model.hpp"

namespace convoy {

enum class WeightFormat : std::uint8_t { automatic, safetensors, onnx, pth };
struct ExportConfig {
  std::string checkpoint;                         ///< file or run directory
  WeightFormat format = WeightFormat::automatic;  ///< automatic: by the output's name
  WeightChoice choice = WeightChoice::usual;      ///< --ema, --no-ema
  std::string output;
  bool overwrite = false;
  bool normalises = false;  ///< onnx: the graph takes pixels from 0 to 255
  Index image_size = 0;     ///< onnx: height and width of the input; 0: as in training
};

/// Writes the file atomically. Returns a line about it. Throws Error(usage) if the output is in the way, and
/// Error(data).
std::string export_model(const ExportConfig& config);

}  // namespace convoy
