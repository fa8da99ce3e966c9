// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/unit_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>

#include "core/errors.hpp"
#include "preprocess/containers/record_reader.hpp"
#include "preprocess/containers/tar_reader.hpp"
#include "preprocess/images/scan.hpp"
#include "preprocess/images/split_folders.hpp"

namespace convoy::preparation {
namespace {

void leave_unread(RawImage& image, Finding finding, std::string detail) {
  image.bytes = {};  // not a megabyte is kept for it
  image.unread = finding;
  image.detail = std::move(detail);
}

std::string size_text(Index bytes, Index most_bytes) {
  return fmt::format("{} bytes, --max-pixels allows {}", bytes, most_bytes);
}

void read_all(ByteStream& stream, Index most_bytes, RawImage& image) {
  constexpr std::size_t piece = std::size_t{1} << 17;
  std::vector<std::uint8_t>& to = image.bytes;
  image.unread.reset();
  if (const Index left = stream.bytes_left(); left > most_bytes) {
    return leave_unread(image, Finding::too_large, size_text(left, most_bytes));
  }
  to.clear();
  for (std::size_t used = 0;;) {
    to.resize(used + piece);
    const std::size_t got = stream.read(to.data() + used, piece);
    used += got;
    if (static_cast<Index>(used) > most_bytes) {
      return leave_unread(image, Finding::too_large, fmt::format("--max-pixels allows {} bytes", most_bytes));
    }
    if (got > 0) continue;
    to.resize(used);
    return;
  }
}

/// The image that `tar` has just come to.
void read_member(TarReader& tar, const TarMember& member, Index most_bytes, RawImage& image) {
  image.unread.reset();
  if (!member.link.empty()) return leave_unread(image, Finding::link, "to " + member.link);
  if (!tar.read(image.bytes, most_bytes)) {
    leave_unread(image, Finding::too_large, size_text(member.bytes, most_bytes));
  }
}

/// Single files, several on their way at once where the store is far.
class FilesReader final : public UnitReader {
 public:
  FilesReader(const ImagesSpec& spec, OpenPool& pool, const Unit& unit, Index position)
      : pool_(pool),
        unit_(unit),
        most_bytes_(most_file_bytes(spec.recipe.limits)),
        at_(std::max(position, unit.begin)) {
    if (unit.kind == UnitKind::files && pool.listed != unit.object) {
      pool.listed.reset();
      pool.files = list_files(*pool.store, unit.object, spec.extensions);
      pool.listed = unit.object;
    }
    if (static_cast<Index>(names().size()) < unit.end) {
      fail(Exit::data, "'{}' has {} images, a moment ago it had {} or more; start again when nobody changes it",
           pool.store->address(unit.object), names().size(), unit.end);
    }
    ahead_ = at_;
  }

  bool next(RawImage& image) override {
    if (at_ >= unit_.end) return false;
    for (; ahead_ < std::min(unit_.end, at_ + static_cast<Index>(pool_.store->streams_ahead())); ++ahead_) {
      streams_.push_back(pool_.store->open(join_names(unit_.object, names()[static_cast<std::size_t>(ahead_)])));
    }
    const auto entry = static_cast<std::size_t>(at_);
    image.name = join_names(unit_.prefix, names()[entry]);
    read_all(*streams_.front(), most_bytes_, image);
    streams_.pop_front();
    if (unit_.kind == UnitKind::listed) {
      image.class_text = pool_.labels->class_of(entry);
    } else if (pool_.labels) {
      image.class_text = pool_.labels->find(image.name);
    } else {
      image.class_text = unit_.class_name;
    }
    image.next = ++at_;
    return true;
  }

 private:
  const std::vector<std::string>& names() const {
    return unit_.kind == UnitKind::listed ? pool_.labels->paths() : pool_.files;
  }

  OpenPool& pool_;
  const Unit& unit_;
  std::deque<std::unique_ptr<ByteStream>> streams_;
  Index most_bytes_;
  Index at_, ahead_ = 0;
};

/// What the two readers of archives share: where they begin.
TarReader open_tar(OpenPool& pool, const Unit& unit, Index position) {
  const Compression compression = compression_of(unit.object);
  std::string what = pool.store->address(unit.object);
  if (unit.nested) {
    what += ":" + unit.prefix;
    const Index begin = std::max<Index>(position, 0);
    return {pool.store->open(unit.object, {unit.begin + begin, unit.end}), what, Compression::none, begin};
  }
  if (compression != Compression::none) return {pool.store->open(unit.object), what, compression, 0};
  const Index begin = std::max(position, unit.begin);
  return {pool.store->open(unit.object, {begin, -1}), what, compression, begin};
}

class TarImages final : public UnitReader {
 public:
  TarImages(const ImagesSpec& spec, OpenPool& pool, const Unit& unit, Index position)
      : spec_(spec), pool_(pool), unit_(unit), from_(position), tar_(open_tar(pool, unit, position)) {}

  bool next(RawImage& image) override {
    TarMember member;
    while (tar_.next(member, Links::show)) {
      if (!unit_.nested && unit_.end >= 0 && member.begin >= unit_.end) return false;
      if (member.begin < from_ || !is_image_name(member.name, spec_.extensions)) continue;
      const std::string& inside = pool_.source.inside;
      const auto name = name_inside(member.name, unit_.nested ? "" : inside);
      if (!name) continue;
      if (inside.empty() && !unit_.nested && unit_.class_name.empty() && !pool_.labels) {
        splits_.note(member.name);
        splits_.require_one(pool_.store->address(unit_.object));
      }
      image.name = join_names(unit_.prefix, *name);
      read_member(tar_, member, most_file_bytes(spec_.recipe.limits), image);
      image.next = tar_.next_begin();
      if (pool_.labels) {
        image.class_text = pool_.labels->find(image.name);
      } else if (const std::string folder = folder_name(*name); !folder.empty() && unit_.class_name.empty()) {
        image.class_text = base_name(folder);
      } else if (!unit_.class_name.empty()) {
        image.class_text = unit_.class_name;
      } else {
        image.class_text.reset();
      }
      return true;
    }
    return false;
  }

 private:
  const ImagesSpec& spec_;
  OpenPool& pool_;
  const Unit& unit_;
  Index from_;
  TarReader tar_;
  ArchiveSplits splits_;  ///< met so far
};

/// Files that share a key (the name up to the first dot of its last part) are one sample.
class ShardImages final : public UnitReader {
 public:
  ShardImages(const ImagesSpec& spec, OpenPool& pool, const Unit& unit, Index position)
      : spec_(spec), pool_(pool), unit_(unit), from_(position), tar_(open_tar(pool, unit, position)) {
    more_ = tar_.next(member_, Links::show);
  }

  bool next(RawImage& image) override {
    while (more_) {
      const std::string key = key_of(member_.name);
      const bool wanted = member_.begin >= from_;
      bool found = false;
      image.class_text.reset();
      for (; more_ && key_of(member_.name) == key; more_ = tar_.next(member_, Links::show)) {
        if (wanted) found = take(image) || found;
        image.next = tar_.next_begin();
      }
      if (!found) continue;
      image.name = join_names(unit_.prefix, key);
      if (pool_.labels) image.class_text = pool_.labels->find(key);
      return true;
    }
    return false;
  }

 private:
  static std::string key_of(const std::string& name) { return name.substr(0, name.find('.', name.rfind('/') + 1)); }

  /// True: the image itself.
  bool take(RawImage& image) {
    if (is_image_name(member_.name, spec_.extensions)) {
      read_member(tar_, member_, most_file_bytes(spec_.recipe.limits), image);
      return true;
    }
    constexpr Index most_digits = 4096;
    if (!member_.name.ends_with(".cls") || !tar_.read(text_, most_digits)) return false;
    Index number = -1;
    const auto* begin = reinterpret_cast<const char*>(text_.data());
    std::from_chars(begin, begin + text_.size(), number);
    if (number >= 0) image.class_text = numbered_class(number);
    return false;
  }

  const ImagesSpec& spec_;
  OpenPool& pool_;
  const Unit& unit_;
  Index from_;
  TarReader tar_;
  TarMember member_;
  bool more_ = false;
  std::vector<std::uint8_t> text_;
};

class RecordImages final : public UnitReader {
 public:
  RecordImages(const ImagesSpec& spec, OpenPool& pool, const Unit& unit, Index position)
      : spec_(spec),
        pool_(pool),
        unit_(unit),
        reader_(pool.store->open(unit.object, {std::max(position, unit.begin), unit.end}),
                pool.store->address(unit.object), std::max(position, unit.begin)) {}

  bool next(RawImage& image) override {
    ImageRecord record;
    const Index most_bytes = most_file_bytes(spec_.recipe.limits);
    if (!reader_.next(record, most_bytes)) return false;
    // Ids need not be unique, places are.
    image.name = fmt::format("{}/{}@{}", unit_.prefix, record.id, record.begin);
    image.class_text.reset();
    if (pool_.labels) {
      image.class_text = pool_.labels->find(std::to_string(record.id));
    } else if (spec_.label_column < static_cast<Index>(record.labels.size())) {
      const float label = record.labels[static_cast<std::size_t>(spec_.label_column)];
      if (label >= 0 && label < 1e9F && label == std::floor(label)) {
        image.class_text = numbered_class(static_cast<Index>(label));
      }
    }
    image.unread.reset();
    image.bytes = std::move(record.image);
    if (record.image_bytes > most_bytes) {
      leave_unread(image, Finding::too_large, size_text(record.image_bytes, most_bytes));
    }
    image.next = reader_.position();
    return true;
  }

 private:
  const ImagesSpec& spec_;
  OpenPool& pool_;
  const Unit& unit_;
  RecordReader reader_;
};

}  // namespace

Index most_file_bytes(const DecodeLimits& limits) {
  constexpr Index rest = Index{1} << 20;
  return limits.max_pixels * channel_count(Channels::rgb) + rest;
}

std::unique_ptr<UnitReader> open_unit(const ImagesSpec& spec, OpenPool& pool, const Unit& unit, Index position) {
  switch (unit.kind) {
    case UnitKind::files:
    case UnitKind::listed:
      return std::make_unique<FilesReader>(spec, pool, unit, position);
    case UnitKind::tar:
      return std::make_unique<TarImages>(spec, pool, unit, position);
    case UnitKind::shard:
      return std::make_unique<ShardImages>(spec, pool, unit, position);
    case UnitKind::records:
      return std::make_unique<RecordImages>(spec, pool, unit, position);
  }
  fail(Exit::internal, "unknown kind of unit");
}

}  // namespace convoy::preparation
