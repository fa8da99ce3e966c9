// SPDX-License-Identifier: Apache-2.0
// Image files that a list names, each with its label.
#include <algorithm>

#include "core/stop.hpp"
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {
namespace {

constexpr Index files_per_part = 16 * files_per_shard;

class ListSource final : public Source {
 public:
  const char* name() const override { return "list"; }
  const char* train_help() const override { return "file of lines 'path label', or MXNet's .lst"; }

  std::vector<SplitSource> find(const PrepareSpec& spec) const override {
    std::vector<SplitSource> lists{{Split::train, spec.root, {}, spec.train, ""}};
    if (!spec.val.empty()) lists.push_back({Split::val, spec.root, {}, spec.val, ""});
    return lists;
  }

  /// Parts of the list, so that ranks share looking at its files. A container's kind is the number of its part.
  std::vector<Container> list(const PrepareSpec&, OpenSplit& split, const ClassList&) const override {
    std::vector<Container> parts{{}};
    for (Index begin = files_per_part; begin < files_of(split); begin += files_per_part) {
      parts.push_back({.kind = begin / files_per_part});
    }
    return parts;
  }

  void cut(const PrepareSpec&, OpenSplit& split, const Container& part, ShardList& to) const override {
    Shard shard;
    shard.split = split.source.split;
    shard.position_weight = usual_file_bytes;
    if (part.kind == 0) {
      to.note(split.source.labels);
    } else {
      to.go_on();
    }
    const Index begin = part.kind * files_per_part, end = std::min(begin + files_per_part, files_of(split));
    for (Index i = begin; i < end; ++i) {
      leave_if_stopped("looking at files");
      to.trace(split.store->glance_at(split.labels->paths()[static_cast<std::size_t>(i)]));
    }
    for (shard.begin = begin; shard.begin < end; shard.begin = shard.end) {
      shard.end = std::min(shard.begin + files_per_shard, end);
      shard.weight = (shard.end - shard.begin) * shard.position_weight;
      to.add(shard);
    }
  }

  std::unique_ptr<SampleReader> open(const PrepareSpec& spec, OpenSplit& split, const Shard& shard,
                                     Index position) const override {
    return std::make_unique<FileReader>(spec, split, shard, position, FileReader::Names::list);
  }

 private:
  static Index files_of(const OpenSplit& split) { return static_cast<Index>(split.labels->paths().size()); }
};

}  // namespace

const Source& list_source() {
  static const ListSource source;
  return source;
}

}  // namespace convoy::preparation
