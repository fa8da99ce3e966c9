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

namespace {

void index_members(OpenSplit& split, const Shard& shard) {
  split.members.clear();
  split.follower.reset();
  Shard whole = shard;
  if (!shard.nested) whole.begin = 0;
  TarReader tar = open_archive(split, whole, -1);
  for (TarMember member; tar.next(member, Members::and_links);) {
    split.members[member.name] = {member.begin, member.target};
  }
}

/// Finds the file to which a link leads: where its header begins. -1: it is not there.
Index follow(const OpenSplit& split, const std::string& target) {
  constexpr int most_links = 40;  // as the kernel
  auto at = split.members.find(target);
  for (int i = 0; i < most_links && at != split.members.end(); ++i) {
    const auto& [begin, further] = at->second;
    if (further.empty()) return begin;
    at = split.members.find(further);
  }
  return -1;
}

void read_link(OpenSplit& split, const Shard& shard, const TarMember& link, Index most_bytes, RawSample& sample) {
  const std::string archive = shard.nested ? shard.object + ":" + shard.prefix : shard.object;
  if (split.indexed != archive) index_members(split, shard);
  split.indexed = archive;
  const Index begin = follow(split, link.target);
  if (begin < 0) return sample.leave_unread(Finding::link, "to " + link.link + ", which is not there");
  // A compressed archive is read on from the last link's file: links mostly come in the order of their files.
  TarMember file;
  const bool compressed = !shard.nested && compression_of(shard.object) != Compression::none;
  if (!compressed || !split.follower || split.followed >= begin) {
    Shard whole = shard;
    if (!shard.nested) whole.begin = 0;
    split.follower.reset(new TarReader(open_archive(split, whole, begin)));
  }
  while (split.follower->next(file) && file.begin < begin) {
  }
  split.followed = begin;
  if (!split.follower->read(sample.bytes, most_bytes)) sample.leave_too_large(file.bytes, most_bytes);
}

}  // namespace

void read_member(OpenSplit& split, const Shard& shard, TarReader& tar, const TarMember& member, Index most_bytes,
                 RawSample& sample) {
  sample.unread.reset();
  if (!member.link.empty()) return read_link(split, shard, member, most_bytes, sample);
  if (!tar.read(sample.bytes, most_bytes)) sample.leave_too_large(member.bytes, most_bytes);
}

}  // namespace convoy::preparation
