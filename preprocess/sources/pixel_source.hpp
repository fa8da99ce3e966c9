// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "preprocess/sources/source.hpp"

namespace convoy::preparation {

/// The samples of a pixel set, both splits.
class PixelSource final : public Source {
 public:
  using Opener = std::shared_ptr<const PixelSet> (*)(const PrepareSpec& spec);
  PixelSource(const char* name, Opener opener) : name_(name), opener_(opener) {}
  const char* name() const override { return name_; }
  bool has_pixels() const override { return true; }
  std::vector<SplitSource> find(const PrepareSpec& spec) const override;
  std::shared_ptr<const PixelSet> open_set(const PrepareSpec& spec) const override { return opener_(spec); }
  std::vector<Container> list(const PrepareSpec& spec, OpenSplit& split, const ClassList& classes) const override;
  void cut(const PrepareSpec& spec, OpenSplit& split, const Container& container, ShardList& to) const override;
  std::unique_ptr<SampleReader> open(const PrepareSpec& spec, OpenSplit& split, const Shard& shard,
                                     Index position) const override;

 private:
  const char* name_;
  Opener opener_;
};

/// Makes `spec` store the pixels of a set as they are, and decides the number of val partitions. Throws Error(usage)
/// where a split has too few samples for its partitions.
void adopt_set(const PixelSet& set, PrepareSpec& spec);

}  // namespace convoy::preparation
