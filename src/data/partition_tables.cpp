// SPDX-License-Identifier: Apache-2.0
#include "data/partition_tables.hpp"

#include "core/errors.hpp"

namespace convoy {
namespace {

template <class T>
void read_table(const File& file, std::vector<T>& table, std::size_t count, std::uint64_t offset) {
  table.resize(count);
  file.read_at(table.data(), count * sizeof(T), offset);
}

/// Offsets from 0 to `end`, none smaller than the one before.
bool cover(const std::vector<Index>& offsets, Index end) {
  if (offsets.front() != 0 || offsets.back() != end) return false;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) return false;
  }
  return true;
}

void read_names(const Partition& p, const File& file, std::vector<std::string>& names) {
  std::vector<Index> offsets;
  read_table(file, offsets, static_cast<std::size_t>(p.samples) + 1, p.name_offsets_offset);
  if (!cover(offsets, p.name_bytes)) {
    fail(Exit::data, "'{}': dataset '{}' does not cover the names", p.path, partition_name::name_offsets);
  }
  std::string all(static_cast<std::size_t>(p.name_bytes), '\0');
  file.read_at(all.data(), all.size(), p.names_offset);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    names.push_back(
        all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(offsets[i + 1] - offsets[i])));
  }
}

}  // namespace

PartitionTables read_partition_tables(const Partition& p, const File& file) {
  const auto n = static_cast<std::size_t>(p.samples);
  PartitionTables tables;
  read_table(file, tables.labels, n, p.labels_offset);
  read_table(file, tables.ids, n, p.ids_offset);
  read_table(file, tables.crc, n, p.crc_offset);
  if (p.is_jpeg()) {
    read_table(file, tables.offsets, n + 1, p.offsets_offset);
  } else {
    tables.offsets.resize(n + 1);
    for (std::size_t i = 0; i <= n; ++i) tables.offsets[i] = static_cast<Index>(i) * p.image_bytes();
  }
  if (p.dimensions_offset > 0) read_table(file, tables.dimensions, 2 * n, p.dimensions_offset);
  if (p.names_offset > 0) read_names(p, file, tables.names);
  return tables;
}

std::string find_table_fault(const Partition& p, const PartitionTables& tables) {
  if (!cover(tables.offsets, p.stored_bytes)) {
    return fmt::format("'{}': dataset '{}' does not cover the {} bytes of samples", p.path, partition_name::offsets,
                       p.stored_bytes);
  }
  for (std::size_t i = 0; i < tables.dimensions.size(); ++i) {
    if (tables.dimensions[i] > 0) continue;
    return fmt::format("'{}': dataset '{}' holds {} for sample {}, expected pixels", p.path, partition_name::dimensions,
                       tables.dimensions[i], i / 2);
  }
  return {};
}

}  // namespace convoy
