// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "data/partition.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

/// File names of a split by partition number, and how many there should be.
struct Series {
  std::map<Index, std::string> paths;
  std::set<Index> counts;
};

Series find_series(const std::string& folder, const std::string& split) {
  Series series;
  std::error_code reason;
  fs::directory_iterator entries(folder, reason);
  if (reason) {
    fail(Exit::data, "cannot open the data folder '{}' ({}); make it with convoy-preprocess, or name another", folder,
         reason.message());
  }
  for (; entries != fs::directory_iterator(); entries.increment(reason)) {
    const PartitionName name = parse_partition_name(entries->path().filename().string());
    if (name.partitions == 0 || name.split != split) continue;
    series.paths[name.number] = entries->path().string();
    series.counts.insert(name.partitions);
  }
  if (reason) fail(Exit::data, "cannot list the data folder '{}' ({}); check the disk", folder, reason.message());
  return series;
}

void require_complete(const Series& series, const std::string& folder, const std::string& split) {
  if (series.paths.empty()) {
    fail(Exit::data, "'{}' has no partition of the split '{}' ({}-NNNNN-of-NNNNN.h5); make it with convoy-preprocess",
         folder, split, split);
  }
  if (series.counts.size() > 1) {
    fail(Exit::data,
         "'{}' mixes '{}' partitions of {} and of {}; remove one series or run convoy-preprocess --overwrite", folder,
         split, *series.counts.begin(), *series.counts.rbegin());
  }
  const Index count = *series.counts.begin();
  for (Index number = 0; number < count; ++number) {
    if (series.paths.contains(number)) continue;
    fail(Exit::data,
         "'{}' is missing ({} of {} partitions are there); run convoy-preprocess again, it makes only those",
         (fs::path(folder) / partition_file_name(split, number, count)).string(), series.paths.size(), count);
  }
}

}  // namespace

DatasetInfo read_dataset_info(const std::string& folder, const std::string& split) {
  const Series series = find_series(folder, split);
  require_complete(series, folder, split);
  DatasetInfo info;
  info.folder = folder;
  info.split = split;
  Partition first;
  for (const auto& [number, path] : series.paths) {
    const Partition p = read_partition(path);
    if (number == 0) {
      first = p;
    } else {
      require_same_set(first, p);
    }
    if (p.first != info.samples) {
      fail(Exit::data, "'{}': attribute 'first_sample' is {}, expected {}; run convoy-preprocess verify '{}'", path,
           p.first, info.samples, folder);
    }
    info.partitions.push_back({path,
                               {p.first, p.samples},
                               p.images_offset,
                               p.labels_offset,
                               p.ids_offset,
                               p.crc_offset,
                               p.offsets_offset,
                               p.dimensions_offset,
                               p.stored_bytes});
    info.samples += p.samples;
    const std::uint64_t seal[] = {static_cast<std::uint64_t>(p.samples), p.seal_crc};
    info.digest = hash_bytes(seal, sizeof seal, info.digest);
  }
  if (info.samples != first.split_samples) {
    fail(Exit::data,
         "'{}': partitions hold {} samples, attribute 'split_samples' says {}; run convoy-preprocess verify '{}'",
         first.path, info.samples, first.split_samples, folder);
  }
  info.height = first.height;
  info.width = first.width;
  info.channels = first.channels;
  info.classes = first.classes;
  info.class_names = first.class_names;
  info.mean = first.mean;
  info.std = first.std;
  info.mean_image = first.mean_image;
  info.source = first.source;
  info.encoding = first.encoding;
  return info;
}

bool has_split(const std::string& folder, const std::string& split) {
  return !find_series(folder, split).paths.empty();
}

}  // namespace convoy
