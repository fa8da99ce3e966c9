// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metrics/metrics.hpp"

namespace convoy {

/// Of an epoch, or what was known of it; hours count from the start of training. NaN: nothing known.
struct EpochRow {
  Index epoch = 0, step = 0;
  double hours = 0, images_per_second = 0;
  CounterValues training{}, validation{};  ///< as shown
};

/// One row per epoch: what training and the last validation in it gave. Shown at the end of a run, written as
/// summary.csv.
class EpochTable {
 public:
  void add(const EpochRecord& record, Index step);
  void add(const ValidationRecord& record);
  bool empty() const { return rows_.empty(); }
  /// Columns under a heading line; `-` where an epoch has no number. Hours are the sum of epochs and validations so
  /// far.
  std::string text() const;
  std::string csv() const;
  std::vector<EpochRow> rows() const;
  int k() const { return k_; }

 private:
  struct Row {
    std::optional<EpochRecord> training;
    Index step = 0;
    std::optional<ValidationRecord> validation;
    double validation_seconds = 0;  ///< of all validations in the epoch
  };
  std::map<Index, Row> rows_;
  int k_ = 5;
};

}  // namespace convoy
