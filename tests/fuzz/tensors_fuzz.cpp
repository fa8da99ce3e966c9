// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of tensors: the first two formats that other programs write. Checksums of an archive's entries
// are made right first, so that what lies behind them is reached.
#include <cstdint>
#include <span>
#include <string>

#include "core/errors.hpp"
#include "interchange/tensor_file.hpp"
#include "interchange/zip.hpp"
#include "io/file.hpp"
#include "tests/fuzz/counters.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace convoy {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;

/// Central directory entries get the CRC of the data that they name.
void mend_checksums(const std::string& path) {
  File file(path, File::Access::update);
  std::string bytes(file.size(), '\0');
  file.read_at(bytes.data(), bytes.size(), 0);
  constexpr std::size_t header = 46, at_crc = 16;
  std::size_t entry = 0;
  for (const ZipEntry& each : read_zip(file)) {
    entry = bytes.find("PK\x01\x02", entry);
    if (entry == std::string::npos || entry + header > bytes.size()) return;
    const auto data = std::as_bytes(std::span(bytes)).subspan(each.offset, each.bytes);
    const std::uint32_t crc = zip_crc(data);
    file.write_at(&crc, sizeof crc, entry + at_crc);
    entry += header;
  }
}

void run(const std::string& path) {
  if (tensor_format_of(path) == TensorFormat::pth) mend_checksums(path);
  const TensorFile file(path);
  for (const StoredValues& tensor : file.tensors()) file.read(tensor);
  ++inputs_read();
}

}  // namespace
}  // namespace convoy

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace convoy;
  if (size > most_bytes) return 0;
  static const MemoryFile file("weights");
  File(file.path(), File::Access::create).write_at(data, size, 0);
  try {
    run(file.path());
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
