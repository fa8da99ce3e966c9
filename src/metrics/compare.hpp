// SPDX-License-Identifier: Apache-2.0
// Where the logs of two runs first differ.
#pragma once
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

struct NumberPair {
  std::string name;  ///< `loss`
  double a = 0, b = 0;
};

/// A record of both logs, of the same kind at the same step.
struct RecordPair {
  std::string split;  ///< `train`, `val`, `epoch`
  Index step = 0;
  std::vector<NumberPair> numbers;  ///< those that differ
};

struct LogComparison {
  Index records = 0;             ///< that both have
  Index equal_to = 0;            ///< step of the last record before the first difference; 0: there is none
  Index last_a = 0, last_b = 0;  ///< the highest step in each
  /// Training records up to the lower of both last steps, and how many of them are of a step that both logged.
  Index train_a = 0, train_b = 0, train_common = 0;
  std::optional<RecordPair> first;  ///< the first pair that differs
};

/// Of two metrics.jsonl. Compares only numbers that data and seed decide: images, loss, accuracies, learning rate.
/// Means of intervals are compared if both intervals have the same number of images. Lines that are no record are
/// skipped.
LogComparison compare_logs(std::istream& a, std::istream& b);

}  // namespace convoy
