// SPDX-License-Identifier: Apache-2.0
// Small partition files whose every byte is known: pixel k of sample id is (id * 31 + k) mod 256, its label id mod
// classes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/deal.hpp"
#include "io/seal.hpp"
#include "preprocess/partition_writer.hpp"

namespace convoy {

inline std::uint8_t formula_pixel(Index id, Index k) { return static_cast<std::uint8_t>(id * 31 + k); }

inline Partition formula_header(const std::string& folder, const std::string& split, Index number, Index partitions,
                                Index samples) {
  const Range range = deal(samples, partitions, number);
  Partition p;
  p.path = folder + "/" + partition_file_name(split, number, partitions);
  p.split = split;
  p.number = number;
  p.partitions = partitions;
  p.first = range.begin;
  p.samples = range.count;
  p.split_samples = samples;
  p.height = 3;
  p.width = 5;
  p.channels = 2;
  p.classes = 4;
  p.seed = 7;
  p.class_names = {"north", "east", "south", "west"};
  p.mean = {100.5, 120.25};
  p.std = {50, 60.125};
  p.source = "formula";
  p.source_digest = "none";
  p.parameters = "formula=1";
  return p;
}

/// Writes a sample's bytes and returns its label: sample i of the partition.
using ReadSample = std::function<std::int32_t(Index i, std::uint8_t* image)>;

/// Writes a whole raw partition. Throws what `read` throws; the temporary file is removed then.
inline void write_partition(Partition header, const ReadSample& read) {
  header.encoding = "raw";
  const auto count = static_cast<std::size_t>(header.samples), bytes = static_cast<std::size_t>(header.image_bytes());
  preparation::SampleRows empty;
  empty.labels.resize(count);
  empty.crc.resize(count);
  preparation::PartitionWriter writer(header, std::move(empty));
  std::vector<std::uint8_t> image(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    writer.rows().labels[i] = read(static_cast<Index>(i), image.data());
    writer.rows().crc[i] = crc32c(image.data(), bytes);
    writer.put(i * bytes, image.data(), bytes);
  }
  writer.finish();
}

inline void write_formula_partition(const Partition& header) {
  write_partition(header, [&](Index i, std::uint8_t* image) {
    const Index id = header.first + i;
    for (Index k = 0; k < header.image_bytes(); ++k) image[k] = formula_pixel(id, k);
    return static_cast<std::int32_t>(id % header.classes);
  });
}

/// A whole split.
inline void write_formula_split(const std::string& folder, const std::string& split, Index partitions, Index samples) {
  for (Index number = 0; number < partitions; ++number) {
    write_formula_partition(formula_header(folder, split, number, partitions, samples));
  }
}

}  // namespace convoy
