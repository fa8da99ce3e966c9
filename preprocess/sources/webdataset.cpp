// SPDX-License-Identifier: Apache-2.0
// WebDataset: tar archives in which files that share a key (the name up to the first dot of its last part) are one
// sample.
#include <set>

#include <fmt/ranges.h>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "preprocess/sources/archive_reader.hpp"
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {
namespace {

class WebdatasetReader final : public SampleReader {
 public:
  WebdatasetReader(const PrepareSpec& spec, OpenSplit& split, const Shard& shard, Index position)
      : spec_(spec), split_(split), shard_(shard), from_(position), tar_(open_archive(split, shard, position)) {
    more_ = tar_.next(member_, Members::and_links);
  }

  bool next(RawSample& sample) override {
    while (more_) {
      const std::string key = key_of(member_.name);
      const bool wanted = member_.begin >= from_;
      seen_.clear();
      best_ = none;
      others_.clear();
      sample.class_text.reset();
      for (; more_ && key_of(member_.name) == key; more_ = tar_.next(member_, Members::and_links)) {
        if (wanted) take(member_.name.substr(key.size()), sample);
        sample.next = tar_.next_begin();
      }
      if (best_ == none) continue;
      sample.name = join_names(shard_.prefix, key);
      sample.remark = others_.empty() ? "" : fmt::format("without {}", fmt::join(others_, ", "));
      if (split_.labels) sample.class_text = split_.labels->find(key);
      return true;
    }
    return false;
  }

 private:
  /// `.jpg` is the image of a sample rather than `.mask.png`, and the first of equals.
  enum Rank : std::uint8_t { none, of_longer_name, plain };

  static std::string key_of(const std::string& name) { return name.substr(0, name.find('.', name.rfind('/') + 1)); }

  /// Takes a member of the sample, whose name goes on with `ending` behind the key.
  void take(const std::string& ending, RawSample& sample) {
    const bool repeated = !seen_.insert(ending).second;
    if (is_image_name(member_.name, spec_.extensions)) {
      const Rank rank = ending.find('.', 1) == std::string::npos ? plain : of_longer_name;
      if (repeated || rank <= best_) {
        others_.push_back(ending);
        return;
      }
      if (best_ != none) others_.push_back(taken_);
      taken_ = ending;
      best_ = rank;
      return read_member(split_, shard_, tar_, member_, most_file_bytes(spec_.recipe.limits), sample);
    }
    constexpr Index most_digits = 4096;
    if (ending != ".cls") return;
    if (repeated) {
      others_.push_back(ending);
    } else if (tar_.read(text_, most_digits)) {
      sample.class_text = parse_label(trimmed({text_.begin(), text_.end()}));
    }
  }

  const PrepareSpec& spec_;
  OpenSplit& split_;
  const Shard& shard_;
  Index from_;
  TarReader tar_;
  TarMember member_;
  bool more_ = false;
  std::vector<std::uint8_t> text_;
  Rank best_ = none;                 ///< rank of the image taken so far
  std::string taken_;                ///< ending of the best one
  std::set<std::string> seen_;       ///< endings of the sample so far
  std::vector<std::string> others_;  ///< endings that are left out
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
