// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/partition.hpp"
#include "io/file.hpp"

namespace convoy {

/// The tables of a partition, some 30 bytes a sample. Not checked against each other: see find_table_fault().
struct PartitionTables {
  std::vector<std::int32_t> labels;
  std::vector<Index> ids;
  std::vector<std::uint32_t> crc;
  std::vector<Index> offsets;            ///< n + 1, from the beginning of the samples; raw: multiples of a sample
  std::vector<std::int32_t> dimensions;  ///< n x 2 (height, width), or empty
  std::vector<std::string> names;        ///< n, or empty
};
PartitionTables read_partition_tables(const Partition& partition, const File& file);
/// Offsets that leave the samples or run backwards, sizes that are none: what reading relies on. Empty: no fault.
std::string find_table_fault(const Partition& partition, const PartitionTables& tables);

}  // namespace convoy
