// SPDX-License-Identifier: Apache-2.0
// Rectangular validation: images keep their aspect ratio, as in fast.ai's imagenet18. A sample's input size is a
// function of that sample alone, so that counts don't depend on batches or ranks.
#pragma once
#include <vector>

#include "data/dataset.hpp"
#include "image/image.hpp"

namespace convoy {

/// The network input of an image: the short side is `side`, the long one keeps the ratio, rounded to a multiple of 8
/// (or to the short side, where that is nearer), at most twice the short one.
ImageSize rectangle_of(const ImageSize& stored, Index side);

/// Samples of one input size, in the order of the split.
struct ShapeGroup {
  ImageSize size;
  std::vector<Index> samples;
};

/// All samples of a split sorted by aspect ratio (height by width), from the dimensions that partitions store. Empty
/// where samples are pixels of one size. Throws Error(data) where dimensions can't be read.
std::vector<ShapeGroup> group_by_shape(const DatasetInfo& info, Index side);

/// The part of the sorted samples that a rank evaluates: shares differ by at most one.
std::vector<ShapeGroup> share_of(const std::vector<ShapeGroup>& groups, int ranks, int rank);

std::vector<ImageSize> shapes_of(const std::vector<ShapeGroup>& groups);

/// Batches that groups make: none holds two sizes.
Index count_batches(const std::vector<ShapeGroup>& groups, Index batch);

}  // namespace convoy
