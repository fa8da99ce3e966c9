// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/pixel_source.hpp"

#include <algorithm>

#include "preprocess/cut.hpp"

namespace convoy::preparation {
namespace {

class PixelReader final : public SampleReader {
 public:
  PixelReader(const PixelSet& set, const Shard& shard, Index position)
      : set_(set), shard_(shard), at_(std::max(position, shard.begin)) {}

  bool next(RawSample& sample) override {
    if (at_ >= shard_.end) return false;
    sample.name = set_.name(shard_.split, at_);
    sample.bytes.resize(static_cast<std::size_t>(set_.info().image_bytes()));
    sample.class_text = numbered_class(set_.read(shard_.split, at_, sample.bytes.data()));
    sample.next = ++at_;
    return true;
  }

 private:
  const PixelSet& set_;
  const Shard& shard_;
  Index at_;
};

}  // namespace

std::vector<SplitSource> PixelSource::find(const PrepareSpec&) const {
  return {{Split::train, "", {}, "", ""}, {Split::val, "", {}, "", ""}};
}

std::vector<Container> PixelSource::list(const PrepareSpec&, OpenSplit&, const ClassList&) const { return {{}}; }

void PixelSource::cut(const PrepareSpec&, OpenSplit& split, const Container&, ShardList& to) const {
  constexpr Index samples_per_shard = 2048;
  const SetInfo& info = split.set->info();
  Shard shard;
  shard.split = split.source.split;
  shard.position_weight = info.image_bytes();
  to.note(info.digest);
  to.trace_contents(info.digest);
  to.count_objects(1);
  to.add_slices(shard, split.set->samples(shard.split), samples_per_shard);
}

std::unique_ptr<SampleReader> PixelSource::open(const PrepareSpec&, OpenSplit& split, const Shard& shard,
                                                Index position) const {
  return std::make_unique<PixelReader>(*split.set, shard, position);
}

void adopt_set(const PixelSet& set, PrepareSpec& spec) {
  const SetInfo& info = set.info();
  spec.recipe.pixels = {info.height, info.width, info.channels};
  spec.recipe.sizes = {0};
  const Index train = set.samples(Split::train), val = set.samples(Split::val);
  require_enough_samples(Split::train, train, spec.partitions);
  if (spec.val_partitions == 0) {  // as few as keep them no larger than train's
    const Index largest = (train + spec.partitions - 1) / spec.partitions;
    spec.val_partitions = std::min((val + largest - 1) / largest, spec.partitions);
  }
  require_enough_samples(Split::val, val, spec.val_partitions);
}

}  // namespace convoy::preparation
