// SPDX-License-Identifier: Apache-2.0
#include "preprocess/write_partition.hpp"

#include <algorithm>
#include <vector>

#include "core/stop.hpp"
#include "io/seal.hpp"
#include "preprocess/partition_writer.hpp"

namespace convoy::preparation {
namespace {
constexpr Index piece_bytes = Index{8} << 20;
}

void write_partition(const Partition& header, const ReadSample& read) {
  const auto count = static_cast<std::size_t>(header.samples), bytes = static_cast<std::size_t>(header.image_bytes());
  SampleRows empty;
  empty.labels.resize(count);
  empty.crc.resize(count);
  Partition raw = header;
  raw.encoding = "raw";
  PartitionWriter writer(raw, std::move(empty));
  SampleRows& rows = writer.rows();
  const Index step = std::max<Index>(1, piece_bytes / header.image_bytes());
  std::vector<std::uint8_t> images(static_cast<std::size_t>(std::min(step, header.samples)) * bytes);
  for (Index begin = 0; begin < header.samples; begin += step) {
    const Index n = std::min(step, header.samples - begin);
    leave_if_stopped("writing a partition");
    for (Index i = 0; i < n; ++i) {
      std::uint8_t* image = images.data() + static_cast<std::size_t>(i) * bytes;
      const auto at = static_cast<std::size_t>(begin + i);
      rows.labels[at] = read(begin + i, image);
      rows.crc[at] = crc32c(image, bytes);
    }
    writer.put(static_cast<std::uint64_t>(begin) * bytes, images.data(), static_cast<std::size_t>(n) * bytes);
  }
  writer.finish();
}

}  // namespace convoy::preparation
