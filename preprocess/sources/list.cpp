// SPDX-License-Identifier: Apache-2.0
// Image files that a list names, each with its label.
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {
namespace {

class ListSource final : public Source {
 public:
  const char* name() const override { return "list"; }
  const char* train_help() const override { return "file of lines 'path label', or MXNet's .lst"; }

  std::vector<SplitSource> find(const PrepareSpec& spec) const override {
    std::vector<SplitSource> lists{{Split::train, spec.root, {}, spec.train, ""}};
    if (!spec.val.empty()) lists.push_back({Split::val, spec.root, {}, spec.val, ""});
    return lists;
  }

  std::vector<Container> list(const PrepareSpec&, OpenSplit&, const ClassList&) const override { return {{}}; }

  void cut(const PrepareSpec&, OpenSplit& split, const Container&, ShardList& to) const override {
    Shard shard;
    shard.split = split.source.split;
    shard.position_weight = usual_file_bytes;
    to.note(split.source.labels);
    to.add_slices(shard, static_cast<Index>(split.labels->paths().size()), files_per_shard);
  }

  std::unique_ptr<SampleReader> open(const PrepareSpec& spec, OpenSplit& split, const Shard& shard,
                                     Index position) const override {
    return std::make_unique<FileReader>(spec, split, shard, position, FileReader::Names::list);
  }
};

}  // namespace

const Source& list_source() {
  static const ListSource source;
  return source;
}

}  // namespace convoy::preparation
