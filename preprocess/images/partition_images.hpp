// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "preprocess/images/survey.hpp"

namespace convoy::preparation {

/// Which partition: a split, a size, a number.
struct PartitionKey {
  std::size_t split = 0, size = 0;
  Index number = 0;
};
/// Every partition of every split and size, in an order in which dealing them in turn is fair.
std::vector<PartitionKey> all_partitions(const Survey& survey);

/// The images of one partition: where they lie in the runs.
class PartitionImages {
 public:
  PartitionImages(const std::vector<RunReader>& runs, const Survey& survey, const PartitionKey& key);
  /// Returns them in the order of the partition.
  const std::vector<OrderedImage>& images() const { return images_; }
  const std::vector<RunStored>& stored() const { return stored_; }
  /// Calls body(row, bytes) for every image, run after run, each checked against its CRC. Throws Error(data) naming the
  /// run that is damaged.
  void visit(const std::function<void(std::size_t row, std::span<const std::uint8_t> bytes)>& body) const;

 private:
  const std::vector<RunReader>& runs_;
  std::vector<OrderedImage> images_;
  std::vector<RunStored> stored_;
  std::vector<std::vector<std::size_t>> rows_of_run_;  ///< rows sorted as their run is
};

}  // namespace convoy::preparation
