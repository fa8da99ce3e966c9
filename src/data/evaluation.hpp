// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "data/augment.hpp"
#include "data/dataset.hpp"

namespace convoy {

/// A rank's share of a split in natural order, in batches of one size. The last batch repeats its last sample and masks
/// it (valid_count), so that any number of ranks counts every sample exactly once.
class EvaluationBatches {
 public:
  /// The contiguous share of `samples` samples that a rank evaluates; shares differ by at most one and may be empty.
  static Range share(Index samples, int ranks, int rank);

  /// `dataset` holds the share (its range is taken) and must outlive this. `augment.train` is taken as false.
  /// `resident`: the number of the data set's images on the device (Backend::keep_resident); -1: batches bring rows.
  EvaluationBatches(const Dataset& dataset, const AugmentSpec& augment, Index batch, int resident = -1);
  Index count() const;  ///< batches; 0 for an empty share
  /// Rows are those of the data set's memory (of one padded copy for the last batch). The specs stay valid until the
  /// next-but-one call; labels are in `a`.
  Batch batch(Index number);

 private:
  const Dataset& dataset_;
  Index batch_;
  int resident_;
  std::vector<SampleSpec> specs_[2];
  int turn_ = 0;
  std::vector<std::uint8_t> last_images_;
};

}  // namespace convoy
