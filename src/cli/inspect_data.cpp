// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/inspect.hpp"
#include "core/counted.hpp"
#include "core/errors.hpp"
#include "data/dataset.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.4f}", text.empty() ? "" : ", ", value);
  return text;
}

std::string classes(const DatasetInfo& info) {
  std::string text = fmt::format("{}", info.classes);
  constexpr std::size_t shown = 10;
  for (std::size_t i = 0; i < std::min(shown, info.class_names.size()); ++i) {
    text += (i == 0 ? ": " : ", ") + info.class_names[i];
  }
  return text + (info.class_names.size() > shown ? ", ..." : "");
}

std::string describe(const DatasetInfo& info) {
  std::string text = fmt::format("{}: {} in {}, digest {:016x}\n", info.split, counted(info.samples, "image"),
                                 counted(info.partitions.size(), "partition"), info.digest);
  text += fmt::format("  image       {} x {} x {} (h w c), uint8, encoding {}\n", info.height, info.width,
                      info.channels, info.encoding);
  text += fmt::format("  classes     {}\n", classes(info));
  text += fmt::format("  mean        {} (0 to 255, of the train split)\n  std         {}\n", numbers(info.mean),
                      numbers(info.std));
  text += fmt::format("  mean image  {}\n  source      {}\n", info.mean_image.empty() ? "no" : "yes", info.source);
  for (const auto& partition : info.partitions) {
    const Seal seal = check_seal(partition.path);
    text += fmt::format("  {}  samples {} to {}, {:.1f} MB, seal ok\n", partition.path, partition.samples.begin,
                        partition.samples.end() - 1, static_cast<double>(seal.file_bytes) / 1e6);
  }
  return text;
}

}  // namespace

std::string inspect_data(const std::string& folder) {
  std::string text;
  for (const char* split : {"train", "val"}) {
    if (has_split(folder, split)) text += describe(read_dataset_info(folder, split));
  }
  if (text.empty()) read_dataset_info(folder, "train");  // says what is missing
  return text +
         "seals cover all but the samples, which have checksums of their own: 'convoy-preprocess verify' reads those\n";
}

}  // namespace convoy
