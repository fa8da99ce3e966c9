// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/archive_reader.hpp"

#include <algorithm>

namespace convoy::preparation {

TarReader open_archive(OpenSplit& split, const Shard& shard, Index position) {
  const Compression compression = compression_of(shard.object);
  std::string what = split.store->address(shard.object);
  if (shard.nested) {
    what += ":" + shard.prefix;
    const Index begin = std::max<Index>(position, 0);
    return {split.store->open(shard.object, {shard.begin + begin, shard.end}), what, Compression::none, begin};
  }
  if (compression != Compression::none) return {split.store->open(shard.object), what, compression, 0};
  const Index begin = std::max(position, shard.begin);
  return {split.store->open(shard.object, {begin, -1}), what, compression, begin};
}

void read_member(TarReader& tar, const TarMember& member, Index most_bytes, RawSample& sample) {
  sample.unread.reset();
  if (!member.link.empty()) return sample.leave_unread(Finding::link, "to " + member.link);
  if (!tar.read(sample.bytes, most_bytes)) sample.leave_too_large(member.bytes, most_bytes);
}

}  // namespace convoy::preparation
