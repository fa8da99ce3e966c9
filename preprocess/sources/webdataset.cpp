// SPDX-License-Identifier: Apache-2.0
// WebDataset: tar archives in which files that share a key (the name up to the first dot of its last part) are one
// sample.
#include <charconv>

#include <fmt/format.h>

#include "core/errors.hpp"
#include "preprocess/sources/archive_reader.hpp"
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {
namespace {

class WebdatasetReader final : public SampleReader {
 public:
  WebdatasetReader(const PrepareSpec& spec, OpenSplit& split, const Shard& shard, Index position)
      : spec_(spec), split_(split), shard_(shard), from_(position), tar_(open_archive(split, shard, position)) {
    more_ = tar_.next(member_, Links::show);
  }

  bool next(RawSample& sample) override {
    while (more_) {
      const std::string key = key_of(member_.name);
      const bool wanted = member_.begin >= from_;
      bool found = false;
      sample.class_text.reset();
      for (; more_ && key_of(member_.name) == key; more_ = tar_.next(member_, Links::show)) {
        if (wanted) found = take(sample) || found;
        sample.next = tar_.next_begin();
      }
      if (!found) continue;
      sample.name = join_names(shard_.prefix, key);
      if (split_.labels) sample.class_text = split_.labels->find(key);
      return true;
    }
    return false;
  }

 private:
  static std::string key_of(const std::string& name) { return name.substr(0, name.find('.', name.rfind('/') + 1)); }

  /// Returns whether the member is the image itself.
  bool take(RawSample& sample) {
    if (is_image_name(member_.name, spec_.extensions)) {
      read_member(tar_, member_, most_file_bytes(spec_.recipe.limits), sample);
      return true;
    }
    constexpr Index most_digits = 4096;
    if (!member_.name.ends_with(".cls") || !tar_.read(text_, most_digits)) return false;
    Index number = -1;
    const auto* begin = reinterpret_cast<const char*>(text_.data());
    std::from_chars(begin, begin + text_.size(), number);
    if (number >= 0) sample.class_text = numbered_class(number);
    return false;
  }

  const PrepareSpec& spec_;
  OpenSplit& split_;
  const Shard& shard_;
  Index from_;
  TarReader tar_;
  TarMember member_;
  bool more_ = false;
  std::vector<std::uint8_t> text_;
};

class WebdatasetSource final : public Source {
 public:
  const char* name() const override { return "webdataset"; }
  const char* train_help() const override { return "shards: PREFIX-{000000..001281}.tar, or their folder"; }

  std::vector<Container> list(const PrepareSpec& spec, OpenSplit& split, const ClassList&) const override {
    return list_objects(spec, split, "shards (.tar)", is_tar_name);
  }

  void cut(const PrepareSpec&, OpenSplit& split, const Container& container, ShardList& to) const override {
    Shard shard;
    shard.split = split.source.split;
    shard.object = container.name;
    shard.prefix = tar_stem(container.name);
    to.add_object(split, shard);
  }

  std::unique_ptr<SampleReader> open(const PrepareSpec& spec, OpenSplit& split, const Shard& shard,
                                     Index position) const override {
    return std::make_unique<WebdatasetReader>(spec, split, shard, position);
  }
};

}  // namespace

const Source& webdataset_source() {
  static const WebdatasetSource source;
  return source;
}

}  // namespace convoy::preparation
