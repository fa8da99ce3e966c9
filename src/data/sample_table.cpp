// SPDX-License-Identifier: Apache-2.0
#include "data/sample_table.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// Partitions stay open: a global shuffle reads from all of them in turn.
void allow_open_files(std::size_t wanted) {
  constexpr rlim_t others = 128;  // of MPI, logs, libraries
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted + others) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted + others);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted + others)
    fail(
        Exit::usage,
        "a rank reads from {} partitions, and the system lets it open {} files; raise 'ulimit -n', prepare fewer partitions or use --shuffle partition",
        wanted, limit.rlim_cur);
}

/// Rows [skip, skip + n) of one partition.
struct Rows {
  std::uint64_t skip;
  std::size_t n;
};

template <class T>
std::vector<T> read_rows(const File& file, std::uint64_t table, const Rows& rows) {
  std::vector<T> values(rows.n);
  file.read_at(values.data(), rows.n * sizeof(T), table + rows.skip * sizeof(T));
  return values;
}

/// Offsets of n + 1 rows within the partition's samples.
std::vector<Index> offsets_of(const DatasetInfo& info, const PartitionInfo& part, const File& file, const Rows& rows) {
  if (info.encoding == "raw") {
    std::vector<Index> offsets(rows.n + 1);
    for (std::size_t i = 0; i <= rows.n; ++i)
      offsets[i] = (static_cast<Index>(rows.skip) + static_cast<Index>(i)) * info.image_bytes();
    return offsets;
  }
  std::vector<Index> offsets = read_rows<Index>(file, part.offsets_offset, {rows.skip, rows.n + 1});
  for (std::size_t i = 0; i < rows.n; ++i) {
    const Index bytes = offsets[i + 1] - offsets[i];
    if (offsets[i] >= 0 && bytes >= 0 && bytes <= std::numeric_limits<std::int32_t>::max() &&
        offsets[i + 1] <= part.stored_bytes)
      continue;
    fail(
        Exit::data,
        "'{}': dataset '/offsets' places sample {} at {} to {}, outside of {} bytes; run convoy-preprocess verify '{}'",
        part.path, rows.skip + i, offsets[i], offsets[i + 1], part.stored_bytes, info.folder);
  }
  return offsets;
}

bool meets(const PartitionInfo& part, Range range) {
  return range.count > 0 && part.samples.begin < range.end() && range.begin < part.samples.end();
}

/// Those of the partition that lie in the range.
Rows rows_of(const PartitionInfo& part, Range range) {
  const Index begin = std::max(part.samples.begin, range.begin), end = std::min(part.samples.end(), range.end());
  return {static_cast<std::uint64_t>(begin - part.samples.begin), static_cast<std::size_t>(end - begin)};
}

std::vector<std::int32_t> labels_of_rows(const DatasetInfo& info, const PartitionInfo& part, const File& file,
                                         const Rows& rows) {
  const Index stored_classes = info.labels_as.empty() ? info.classes : static_cast<Index>(info.labels_as.size());
  auto labels = read_rows<std::int32_t>(file, part.labels_offset, rows);
  for (std::size_t i = 0; i < rows.n; ++i) {
    if (labels[i] >= 0 && labels[i] < stored_classes) {
      labels[i] = info.label_of(labels[i]);
      continue;
    }
    const std::uint64_t row = rows.skip + i;
    fail(Exit::data,
         "'{}': dataset '/labels' holds {} for sample {} (id {}), expected 0 to {}; run convoy-preprocess verify '{}'",
         part.path, labels[i], row, part.samples.begin + static_cast<Index>(row), stored_classes - 1, info.folder);
  }
  return labels;
}

}  // namespace

std::vector<std::int32_t> read_labels(const DatasetInfo& info, Range range) {
  std::vector<std::int32_t> labels;
  labels.reserve(static_cast<std::size_t>(range.count));
  for (const PartitionInfo& part : info.partitions) {
    if (!meets(part, range)) continue;
    const File file(part.path, File::Access::read);
    const auto own = labels_of_rows(info, part, file, rows_of(part, range));
    labels.insert(labels.end(), own.begin(), own.end());
  }
  return labels;
}

SampleTable::SampleTable(const DatasetInfo& info, Range range) {
  const auto count = static_cast<std::size_t>(range.count);
  labels.reserve(count);
  ids.reserve(count);
  extents.reserve(count);
  allow_open_files(static_cast<std::size_t>(std::count_if(info.partitions.begin(), info.partitions.end(),
                                                          [&](const auto& part) { return meets(part, range); })));
  for (const PartitionInfo& part : info.partitions) {
    if (!meets(part, range)) continue;
    const Rows rows = rows_of(part, range);
    const Index begin = part.samples.begin + static_cast<Index>(rows.skip);
    const File& file = files_.emplace_back(part.path, File::Access::read);
    begins_.push_back(extents.size());
    const auto own_labels = labels_of_rows(info, part, file, rows);
    const auto own_ids = read_rows<Index>(file, part.ids_offset, rows);
    const auto crc = read_rows<std::uint32_t>(file, part.crc_offset, rows);
    const auto offsets = offsets_of(info, part, file, rows);
    for (std::size_t i = 0; i < rows.n; ++i) {
      extents.push_back({part.images_offset + static_cast<std::uint64_t>(offsets[i]),
                         static_cast<std::uint32_t>(offsets[i + 1] - offsets[i]), crc[i]});
      const Index id = begin + static_cast<Index>(i);
      if (own_ids[i] != id)
        fail(Exit::data, "'{}': dataset '/ids' holds {} for sample {}, expected {}; run convoy-preprocess verify '{}'",
             part.path, own_ids[i], rows.skip + i, id, info.folder);
    }
    labels.insert(labels.end(), own_labels.begin(), own_labels.end());
    ids.insert(ids.end(), own_ids.begin(), own_ids.end());
  }
}

std::size_t SampleTable::part_of(std::size_t row) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), row) - begins_.begin()) - 1;
}

void SampleTable::read(std::size_t first, std::size_t last, std::uint8_t* to) const {
  const std::uint64_t begin = extents[first].begin, end = extents[last - 1].end();
  files_[part_of(first)].read_at(to, end - begin, begin);
}

void SampleTable::read_ahead(std::size_t first, std::size_t last) const {
  while (first < last) {
    const std::size_t part = part_of(first), end = part + 1 < begins_.size() ? std::min(begins_[part + 1], last) : last;
    files_[part].read_ahead(extents[first].begin, extents[end - 1].end() - extents[first].begin);
    first = end;
  }
}

}  // namespace convoy
