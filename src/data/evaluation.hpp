// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "data/augment.hpp"
#include "data/batch_queue.hpp"
#include "data/dataset.hpp"

namespace convoy {

struct EvaluationSpec {
  AugmentSpec augment;  ///< train is taken as false
  Index batch = 0;
  int resident = -1;  ///< Backend::keep_resident of the data set's images; -1: batches bring rows
  int workers = 1;    ///< threads that prepare batches ahead where images are made or read; 0: batch() does it
  int prefetch = 4;
  ImageMemory memory;  ///< of rows
};

/// A rank's share of a split in natural order, in batches of one size. The last batch repeats its last sample and masks
/// it (valid_count), so that any number of ranks counts every sample exactly once.
class EvaluationBatches {
 public:
  /// The contiguous share of `samples` samples that a rank evaluates; shares differ by at most one and may be empty.
  static Range share(Index samples, int ranks, int rank);

  /// `dataset` holds the share (its range is taken) and must outlive this.
  EvaluationBatches(const Dataset& dataset, const EvaluationSpec& spec);
  ~EvaluationBatches();
  EvaluationBatches(const EvaluationBatches&) = delete;
  EvaluationBatches& operator=(const EvaluationBatches&) = delete;
  Index count() const;  ///< batches; 0 for an empty share
  /// One batch after another, from 0 on; 0 starts again. Rows are those of the data set's memory, or made. All of it
  /// stays valid until the next-but-one call; labels are in `a`.
  Batch batch(Index number);

 private:
  void prepare(Index number, int worker, BatchSlot& slot);
  bool direct() const { return makers_.empty(); }
  Index valid(Index number) const;

  const Dataset& dataset_;
  Index batch_, image_bytes_ = 0;
  int resident_;
  SampleSpec centre_;
  std::vector<class SampleImages> makers_;  ///< one a worker; none where images lie in memory as they are taken
  std::vector<std::uint8_t> last_images_;
  std::optional<BatchQueue> queue_;
};

}  // namespace convoy
