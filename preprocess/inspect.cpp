// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/log.hpp"
#include "core/text.hpp"
#include "data/dataset.hpp"
#include "data/partition.hpp"
#include "io/file.hpp"
#include "preprocess/partition_folders.hpp"
#include "preprocess/prepare.hpp"

namespace convoy::preparation {
namespace {

constexpr std::size_t names_shown = 20;

std::string join(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.4f}", text.empty() ? "" : ", ", value);
  return text;
}

std::vector<Index> count_labels(const PartitionInfo& part, Index classes) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(part.samples.count));
  File(part.path, File::Access::read).read_at(labels.data(), labels.size() * sizeof labels[0], part.labels_offset);
  std::vector<Index> counts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : labels) {
    if (label < 0 || label >= classes) {
      fail(Exit::data, "'{}': dataset '/labels' holds {}, expected 0 to {}; run convoy-preprocess verify", part.path,
           label, classes - 1);
    }
    ++counts[static_cast<std::size_t>(label)];
  }
  return counts;
}

/// Pearson's chi-squared of a partition against the whole split, per degree of freedom: near 1 where samples are well
/// mixed, large where a partition prefers classes.
double mix_of(const std::vector<Index>& part, const std::vector<Index>& whole) {
  double of_part = 0, of_whole = 0, chi = 0;
  int present = 0;
  for (std::size_t c = 0; c < whole.size(); ++c) {
    of_part += static_cast<double>(part[c]);
    of_whole += static_cast<double>(whole[c]);
    present += whole[c] > 0 ? 1 : 0;
  }
  for (std::size_t c = 0; c < whole.size(); ++c) {
    if (whole[c] == 0) continue;
    const double expected = static_cast<double>(whole[c]) * of_part / of_whole;
    chi += std::pow(static_cast<double>(part[c]) - expected, 2) / expected;
  }
  return present > 1 ? chi / (present - 1) : 0;
}

/// `of`: the size's folder, with a slash, where there are several.
void print_split(const DatasetInfo& info, const std::string& of) {
  std::vector<std::vector<Index>> counts;
  std::vector<Index> whole(static_cast<std::size_t>(info.classes));
  for (const auto& part : info.partitions) {
    counts.push_back(count_labels(part, info.classes));
    for (std::size_t c = 0; c < whole.size(); ++c) whole[c] += counts.back()[c];
  }
  log::info("{}{}", of, info.split);
  log::info("  images      {} of {}x{}x{} (height x width x channels), {} encoding", info.samples, info.height,
            info.width, info.channels, info.encoding);
  log::info("  partitions  {}, {}-[00000-{:05}]-of-{:05}.h5", info.partitions.size(), info.split,
            info.partitions.size() - 1, info.partitions.size());
  log::info("  source      {}, digest of the partitions {:016x}", info.source, info.digest);
  log::info("  mean        {} (pixel units 0 to 255, of train)", join(info.mean));
  log::info("  std         {}", join(info.std));
  log::info("  mean image  {}", info.mean_image.empty() ? "no" : "yes");
  log::info("  covariance  {}", info.covariance.empty() ? "no" : "of the three colours, for --pca-noise-source data");
  log::info("  classes     {}", info.classes);
  for (std::size_t c = 0; c < std::min(whole.size(), names_shown); ++c) {
    log::info("    {:>5}  {:<24} {:>9} images", c, one_line(info.class_names[c]), whole[c]);
  }
  if (whole.size() > names_shown) log::info("    ... {} classes more", whole.size() - names_shown);
  log::info(
      "  class mix   per partition: images, fewest and most of a class, chi-squared per degree of freedom (1 = mixed)");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto [fewest, most] = std::minmax_element(counts[i].begin(), counts[i].end());
    log::info("    {:05}  {:>9}  {:>7}  {:>7}  {:>6.2f}", i, info.partitions[i].samples.count, *fewest, *most,
              mix_of(counts[i], whole));
  }
}

}  // namespace

void inspect(const InspectSpec& spec) {
  bool any = false;
  const auto folders = partition_folders(spec.folder);
  for (const auto& folder : folders) {
    const std::string of = folders.size() > 1 ? std::filesystem::path(folder).filename().string() + "/" : "";
    for (const char* split : {"train", "val"}) {
      if (!has_split(folder, split)) continue;
      print_split(read_dataset_info(folder, split), of);
      any = true;
    }
  }
  if (!any) fail(Exit::data, "'{}' has no partitions of train or val; make them with convoy-preprocess", spec.folder);
}

}  // namespace convoy::preparation
