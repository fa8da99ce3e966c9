// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/partition_images.hpp"

#include <algorithm>

#include "core/deal.hpp"
#include "core/errors.hpp"
#include "core/stop.hpp"
#include "io/seal.hpp"

namespace convoy::preparation {

std::vector<PartitionKey> all_partitions(const Survey& survey) {
  std::vector<PartitionKey> keys;
  for (std::size_t split = 0; split < survey.splits.size(); ++split) {
    for (std::size_t size = 0; size < survey.normalisation.size(); ++size) {
      for (Index n = 0; n < survey.splits[split].partitions(size); ++n) keys.push_back({split, size, n});
    }
  }
  return keys;
}

PartitionImages::PartitionImages(const std::vector<RunReader>& runs, const Survey& survey, const PartitionKey& key)
    : runs_(runs), rows_of_run_(runs.size()) {
  const SplitPlan& split = survey.splits[key.split];
  const auto number = static_cast<std::size_t>(key.number);
  const Boundary &from = split.boundaries[key.size][number], &to = split.boundaries[key.size][number + 1];
  const Range range = deal(split.range.count, split.partitions(key.size), key.number);
  images_ = load_order(runs, survey.classes, split.origin, from.hash, to.hash, nullptr);
  const Index skipped = split.range.begin + range.begin - from.before;
  require(skipped >= 0 && skipped + range.count <= static_cast<Index>(images_.size()),
          "PartitionImages: boundaries don't fit the order");
  images_.erase(images_.begin() + skipped + range.count, images_.end());
  images_.erase(images_.begin(), images_.begin() + skipped);

  for (std::size_t row = 0; row < images_.size(); ++row) rows_of_run_[images_[row].run].push_back(row);
  stored_.resize(images_.size());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto& rows = rows_of_run_[r];
    if (rows.empty()) continue;
    const std::size_t first = images_[rows.front()].number, count = images_[rows.back()].number - first + 1;
    const auto of_run = runs[r].stored(runs[r].open(), key.size, first, count);
    for (const std::size_t row : rows) stored_[row] = of_run[images_[row].number - first];
  }
}

void PartitionImages::visit(
    const std::function<void(std::size_t row, std::span<const std::uint8_t> bytes)>& body) const {
  constexpr std::uint64_t piece_bytes = std::uint64_t{8} << 20;
  std::vector<std::uint8_t> buffer;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const auto& rows = rows_of_run_[r];
    if (rows.empty()) continue;
    const File file = runs_[r].open();
    // Neighbours in the order are neighbours in the run.
    for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      leave_if_stopped("writing partitions");
      const std::uint64_t offset = stored_[rows[begin]].offset;
      std::uint64_t stop = offset + stored_[rows[begin]].bytes;
      for (end = begin + 1; end < rows.size(); ++end) {
        const std::uint64_t next = stored_[rows[end]].offset + stored_[rows[end]].bytes;
        if (next - offset > piece_bytes) break;
        stop = next;
      }
      buffer.resize(stop - offset);
      file.read_at(buffer.data(), buffer.size(), offset);
      for (std::size_t i = begin; i < end; ++i) {
        const RunStored& stored = stored_[rows[i]];
        const std::span<const std::uint8_t> bytes(buffer.data() + (stored.offset - offset), stored.bytes);
        if (crc32c(bytes.data(), bytes.size()) != stored.crc) {
          fail(Exit::data, "'{}' is damaged (image '{}'); remove it and start again: what it held is read once more",
               runs_[r].path(), images_[rows[i]].name);
        }
        body(rows[i], bytes);
      }
    }
  }
}

}  // namespace convoy::preparation
