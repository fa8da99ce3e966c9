// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/sample_reader.hpp"

#include <fmt/format.h>

namespace convoy::preparation {

Index most_file_bytes(const DecodeLimits& limits) {
  constexpr Index rest = Index{1} << 20;
  return limits.max_pixels * channel_count(Channels::rgb) + rest;
}

void RawSample::leave_unread(Finding finding, std::string why) {
  bytes = {};  // not a megabyte is kept for it
  unread = finding;
  detail = std::move(why);
}

void RawSample::leave_too_large(Index file_bytes, Index most_bytes) {
  leave_unread(Finding::too_large, file_bytes < 0
                                       ? fmt::format("--max-pixels allows {} bytes", most_bytes)
                                       : fmt::format("{} bytes, --max-pixels allows {}", file_bytes, most_bytes));
}

void RawSample::read_file(ByteStream& stream, Index most_bytes) {
  constexpr std::size_t chunk = std::size_t{1} << 17;
  unread.reset();
  if (const Index left = stream.bytes_left(); left > most_bytes) return leave_too_large(left, most_bytes);
  bytes.clear();
  for (std::size_t used = 0;;) {
    bytes.resize(used + chunk);
    const std::size_t got = stream.read(bytes.data() + used, chunk);
    used += got;
    if (static_cast<Index>(used) > most_bytes) return leave_too_large(-1, most_bytes);
    if (got > 0) continue;
    bytes.resize(used);
    return;
  }
}

}  // namespace convoy::preparation
