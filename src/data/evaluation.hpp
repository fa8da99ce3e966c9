// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "data/augment.hpp"
#include "data/batch_queue.hpp"
#include "data/dataset.hpp"
#include "data/shapes.hpp"

namespace convoy {

struct EvaluationSpec {
  AugmentSpec augment;  ///< train is taken as false
  Index batch = 0;
  int resident = -1;  ///< Backend::keep_resident of the data set's images; -1: batches bring rows
  int workers = 1;    ///< threads that prepare batches ahead where images are made or read; 0: batch() does it
  int prefetch = 4;
  ImageMemory memory;  ///< of rows
  std::vector<ShapeGroup>
      groups;  ///< rectangular: the samples to take, each size in batches of its own; empty: the range
};

/// A rank's share of a split in natural order, or by groups, in batches of one size. The last batch (of a group)
/// repeats its last sample and masks it (valid_count), so that any number of ranks counts every sample exactly once.
/// Samples of no class are left out.
class EvaluationBatches {
 public:
  /// The contiguous share of `samples` samples that a rank evaluates; shares differ by at most one and may be empty.
  static Range share(Index samples, int ranks, int rank);

  /// `dataset` holds the share (its range is taken) and must outlive this.
  EvaluationBatches(const Dataset& dataset, const EvaluationSpec& spec);
  ~EvaluationBatches();
  EvaluationBatches(const EvaluationBatches&) = delete;
  EvaluationBatches& operator=(const EvaluationBatches&) = delete;
  Index count() const { return static_cast<Index>(runs_.size()); }  ///< batches; 0 for an empty share
  /// Which of the groups a batch belongs to; 0 without groups.
  std::size_t group(Index number) const { return runs_[static_cast<std::size_t>(number)].group; }
  /// One batch after another, from 0 on; 0 starts again. Rows are those of the data set's memory, or made. All of it
  /// stays valid until the next-but-one call; labels are in `a`.
  Batch batch(Index number);

 private:
  void prepare(Index number, int worker, BatchSlot& slot);
  bool direct() const { return makers_.empty(); }
  void leave_out_samples_of_no_class();

  /// The samples of one batch: from `first` on in the range, or in the group.
  struct Run {
    std::size_t group = 0;
    Index first = 0, count = 0;
  };
  const Dataset& dataset_;
  Index batch_, image_bytes_ = 0;
  int resident_;
  SampleSpec centre_;
  std::vector<ShapeGroup> groups_;
  std::optional<std::vector<Index>> known_;  ///< samples of the range that have a class; nothing: all have
  std::vector<Run> runs_;                    ///< one a batch
  std::vector<class SampleImages> makers_;   ///< one a worker; none where images lie in memory as they are taken
  std::vector<std::uint8_t> last_images_;
  std::optional<BatchQueue> queue_;
};

}  // namespace convoy
