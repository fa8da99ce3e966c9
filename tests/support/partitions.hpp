// SPDX-License-Identifier: Apache-2.0
// Small partition files whose every byte is known: pixel k of sample id is (id * 31 + k) mod 256, its label id mod
// classes.
#pragma once
#include <string>
#include <vector>

#include "preprocess/order.hpp"
#include "preprocess/write_partition.hpp"

namespace convoy {

inline std::uint8_t formula_pixel(Index id, Index k) { return static_cast<std::uint8_t>(id * 31 + k); }

inline Partition formula_header(const std::string& folder, const std::string& split, Index number, Index partitions,
                                Index samples) {
  const Range range = preparation::cut_evenly(samples, partitions, number);
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

inline void write_formula_partition(const Partition& header) {
  preparation::write_partition(header, [&](Index i, std::uint8_t* image) {
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
