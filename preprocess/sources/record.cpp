// SPDX-License-Identifier: Apache-2.0
// MXNet's record files. Ranks share a file that has its index beside it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "preprocess/containers/record_reader.hpp"
#include "preprocess/sources/source.hpp"

namespace convoy::preparation {
namespace {

constexpr Index bytes_per_shard = Index{256} << 20;

bool is_record_name(const std::string& name) { return name.ends_with(".rec"); }

class RecordSamples final : public SampleReader {
 public:
  RecordSamples(const PrepareSpec& spec, OpenSplit& split, const Shard& shard, Index position)
      : spec_(spec),
        split_(split),
        shard_(shard),
        reader_(split.store->open(shard.object, {std::max(position, shard.begin), shard.end}),
                split.store->address(shard.object), std::max(position, shard.begin)) {}

  bool next(RawSample& sample) override {
    ImageRecord record;
    const Index most_bytes = most_file_bytes(spec_.recipe.limits);
    if (!reader_.next(record, most_bytes)) return false;
    // Ids need not be unique, places are.
    sample.name = fmt::format("{}/{}@{}", shard_.prefix, record.id, record.begin);
    sample.class_text.reset();
    if (split_.labels) {
      sample.class_text = split_.labels->find(std::to_string(record.id));
    } else if (spec_.label_column < static_cast<Index>(record.labels.size())) {
      const float label = record.labels[static_cast<std::size_t>(spec_.label_column)];
      if (label >= 0 && label < 1e9F && label == std::floor(label)) {
        sample.class_text = numbered_class(static_cast<Index>(label));
      }
    }
    sample.unread.reset();
    sample.bytes = std::move(record.image);
    if (record.image_bytes > most_bytes) sample.leave_too_large(record.image_bytes, most_bytes);
    sample.next = reader_.position();
    return true;
  }

 private:
  const PrepareSpec& spec_;
  OpenSplit& split_;
  const Shard& shard_;
  RecordReader reader_;
};

class RecordSource final : public Source {
 public:
  const char* name() const override { return "recordio"; }
  const char* train_help() const override {
    return ".rec file, several as {a,b}.rec, or their folder; an .idx beside it lets ranks share it";
  }
  bool names_container(const std::string& location) const override {
    return Source::names_container(location) || is_record_name(location);
  }

  std::vector<Container> list(const PrepareSpec& spec, OpenSplit& split, const ClassList&) const override {
    return list_objects(spec, split, "record files (.rec)", is_record_name);
  }

  void cut(const PrepareSpec&, OpenSplit& split, const Container& container, ShardList& to) const override {
    Shard shard;
    shard.split = split.source.split;
    shard.object = container.name;
    const ObjectInfo object = to.note_object(split, shard.object);
    const std::string stem = shard.object.substr(0, shard.object.rfind('.'));
    shard.prefix = base_name(stem);
    std::vector<Index> cuts;
    if (const std::string index = stem + ".idx"; has_index(split, index)) {
      const std::string text = read_object(*split.store, index);
      to.trace_contents(text);  // it decides where shards begin
      cuts = parse_record_index(text, split.store->address(index));
    }
    for (const Index cut : cuts) {
      if (cut - shard.begin < bytes_per_shard || cut >= object.bytes) continue;
      shard.end = cut;
      shard.weight = shard.end - shard.begin;
      to.add(shard);
      shard.begin = cut;
    }
    shard.end = -1;
    shard.weight = std::max<Index>(object.bytes - shard.begin, 1);
    to.add(shard);
  }

  std::unique_ptr<SampleReader> open(const PrepareSpec& spec, OpenSplit& split, const Shard& shard,
                                     Index position) const override {
    return std::make_unique<RecordSamples>(spec, split, shard, position);
  }

 private:
  /// Lists a folder once: thousands of record files may lie in it.
  static bool has_index(OpenSplit& split, const std::string& index) {
    // Of files that were named on a web server nothing tells what lies beside them.
    if (!split.source.names.empty() && parse_location(split.source.folder).scheme == Scheme::http) return false;
    const auto [at, fresh] = split.listings.try_emplace(folder_name(index));
    if (fresh) at->second = split.store->list(at->first).objects;
    return std::binary_search(at->second.begin(), at->second.end(), ObjectInfo{base_name(index), 0, ""},
                              [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
  }
};

}  // namespace

const Source& record_source() {
  static const RecordSource source;
  return source;
}

}  // namespace convoy::preparation
