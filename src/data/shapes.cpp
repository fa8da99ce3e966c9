// SPDX-License-Identifier: Apache-2.0
#include "data/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/errors.hpp"
#include "data/evaluation.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

constexpr Index multiple = 8;
constexpr Index most_ratio = 2;

/// The nearest of `side` itself and the multiples of 8 above it.
Index long_side(double ratio, Index side) {
  const double exact = std::min(ratio, static_cast<double>(most_ratio)) * static_cast<double>(side);
  const Index rounded = static_cast<Index>(std::llround(exact / multiple)) * multiple;
  const auto gap = [exact](Index length) { return std::abs(exact - static_cast<double>(length)); };
  return rounded <= side || gap(side) <= gap(rounded) ? side : std::min(rounded, most_ratio * side);
}

/// Compares height over width, without rounding.
struct Flatter {
  bool operator()(const ImageSize& a, const ImageSize& b) const {
    return std::tuple(a.height * b.width, a.height) < std::tuple(b.height * a.width, b.height);
  }
};

}  // namespace

ImageSize rectangle_of(const ImageSize& stored, Index side) {
  const auto height = static_cast<double>(stored.height), width = static_cast<double>(stored.width);
  if (height < width) return {side, long_side(width / height, side)};
  return {long_side(height / width, side), side};
}

std::vector<ShapeGroup> group_by_shape(const DatasetInfo& info, Index side) {
  if (info.encoding == "raw") return {};
  std::map<ImageSize, std::vector<Index>, Flatter> by_size;
  for (const PartitionInfo& part : info.partitions) {
    const auto count = static_cast<std::size_t>(part.samples.count);
    std::vector<std::int32_t> dimensions(2 * count);
    const File file(part.path, File::Access::read);
    file.read_at(dimensions.data(), dimensions.size() * sizeof dimensions[0], part.dimensions_offset);
    for (std::size_t i = 0; i < count; ++i) {
      const ImageSize stored{dimensions[2 * i], dimensions[2 * i + 1]};
      if (stored.height <= 0 || stored.width <= 0) {
        fail(Exit::data, "'{}': dataset '/dimensions' holds {} x {} for sample {}; run convoy-preprocess verify '{}'",
             part.path, stored.height, stored.width, i, info.folder);
      }
      by_size[rectangle_of(stored, side)].push_back(part.samples.begin + static_cast<Index>(i));
    }
  }
  std::vector<ShapeGroup> groups;
  groups.reserve(by_size.size());
  for (auto& [size, samples] : by_size) groups.push_back({size, std::move(samples)});
  return groups;
}

std::vector<ShapeGroup> share_of(const std::vector<ShapeGroup>& groups, int ranks, int rank) {
  Index total = 0;
  for (const ShapeGroup& group : groups) total += static_cast<Index>(group.samples.size());
  const Range share = EvaluationBatches::share(total, ranks, rank);
  std::vector<ShapeGroup> own;
  Index begin = 0;
  for (const ShapeGroup& group : groups) {
    const auto count = static_cast<Index>(group.samples.size());
    const Index from = std::clamp<Index>(share.begin - begin, 0, count),
                to = std::clamp<Index>(share.end() - begin, from, count);
    if (from < to) own.push_back({group.size, {group.samples.begin() + from, group.samples.begin() + to}});
    begin += count;
  }
  return own;
}

std::vector<ImageSize> shapes_of(const std::vector<ShapeGroup>& groups) {
  std::vector<ImageSize> sizes;
  sizes.reserve(groups.size());
  for (const ShapeGroup& group : groups) sizes.push_back(group.size);
  return sizes;
}

Index count_batches(const std::vector<ShapeGroup>& groups, Index batch) {
  Index batches = 0;
  for (const ShapeGroup& group : groups) batches += (static_cast<Index>(group.samples.size()) + batch - 1) / batch;
  return batches;
}

}  // namespace convoy
