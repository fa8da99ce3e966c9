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

/// Members of an archive by name: where a file's header begins, or where a link leads.
using MemberIndex = std::map<std::string, std::pair<Index, std::string>>;

const MemberIndex& index_members(OpenSplit& split, const std::string& object) {
  if (split.indexed != object) {
    split.members.clear();
    TarReader tar(split.store->open(object), split.store->address(object), Compression::none);
    for (TarMember member; tar.next(member, Links::show);) split.members[member.name] = {member.begin, member.target};
    split.indexed = object;
  }
  return split.members;
}

void read_link(OpenSplit& split, const Shard& shard, const TarMember& member, Index most_bytes, RawSample& sample) {
  constexpr int most_links = 40;  // as the kernel
  if (shard.nested || compression_of(shard.object) != Compression::none ||
      parse_location(split.source.folder).scheme != Scheme::file) {
    return sample.leave_unread(Finding::link, "to " + member.link);
  }
  const MemberIndex& members = index_members(split, shard.object);
  auto at = members.find(member.target);
  for (int i = 0; i < most_links && at != members.end() && !at->second.second.empty(); ++i) {
    at = members.find(at->second.second);
  }
  if (at == members.end() || !at->second.second.empty()) {
    return sample.leave_unread(Finding::link, "to " + member.link + ", which is not there");
  }
  const Index begin = at->second.first;
  TarReader tar(split.store->open(shard.object, {begin, -1}), split.store->address(shard.object), Compression::none,
                begin);
  TarMember file;
  tar.next(file);
  if (!tar.read(sample.bytes, most_bytes)) sample.leave_too_large(file.bytes, most_bytes);
}

}  // namespace

void read_member(OpenSplit& split, const Shard& shard, TarReader& tar, const TarMember& member, Index most_bytes,
                 RawSample& sample) {
  sample.unread.reset();
  if (!member.link.empty()) return read_link(split, shard, member, most_bytes, sample);
  if (!tar.read(sample.bytes, most_bytes)) sample.leave_too_large(member.bytes, most_bytes);
}

}  // namespace convoy::preparation
