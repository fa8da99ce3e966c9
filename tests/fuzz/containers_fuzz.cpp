// SPDX-License-Identifier: Apache-2.0
// Any bytes as a RecordIO file, as a tar archive, as a label file. Only Error may be thrown.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/errors.hpp"
#include "preprocess/containers/record_reader.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/sources/labels.hpp"
#include "tests/fuzz/counters.hpp"
#include "tests/fuzz/memory_stream.hpp"

namespace convoy::preparation {
namespace {

void read_records(std::span<const std::uint8_t> bytes) {
  RecordReader reader(std::make_unique<MemoryStream>(bytes), "fuzz");
  ImageRecord record;
  Index before = 0;
  const Index most_bytes = static_cast<Index>(bytes.size() / 2);
  while (reader.next(record, most_bytes)) {
    if (static_cast<Index>(record.image.size()) > std::min(most_bytes, record.image_bytes)) std::abort();
    if (reader.position() <= before || record.labels.empty()) std::abort();
    before = reader.position();
    ++inputs_read();
  }
}

void read_tar(std::span<const std::uint8_t> bytes) {
  TarReader reader(std::make_unique<MemoryStream>(bytes), "fuzz", Compression::none);
  TarMember member;
  std::vector<std::uint8_t> data;
  Index sum = 0;
  for (int i = 0; i < 1000 && reader.next(member, i % 2 == 0 ? Members::and_folders : Members::files); ++i) {
    if (member.name.empty() || member.name.front() == '/' || ("/" + member.name).find("/../") != std::string::npos) {
      std::abort();
    }
    if (i % 3 == 2 || !member.link.empty()) continue;  // skipped ones take another way
    if (!reader.read(data, static_cast<Index>(bytes.size()))) continue;
    sum += static_cast<Index>(data.size());
    ++inputs_read();
    if (sum > static_cast<Index>(bytes.size())) std::abort();
  }
}

}  // namespace
}  // namespace convoy::preparation

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace convoy;
  using namespace convoy::preparation;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  try {
    if (data[0] == 'R') read_records(rest);
    if (data[0] == 'T') read_tar(rest);
    if (data[0] == 'L') {
      const LabelFile labels(std::string(rest.begin(), rest.end()), "fuzz", 0, LabelFile::Paths::keep);
      labels.find("n01440764/n01440764_7.JPEG");
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
