// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace convoy {

/// Counts of (label, predicted class) over the samples of all ranks.
class Confusion {
 public:
  explicit Confusion(Index classes);
  /// `logits` [samples][classes], host memory. Ties go to the lower class, as in the accuracy counters.
  void add(std::span<const SampleSpec> samples, const float* logits);
  /// Collective.
  void sum(Communicator& communicator);
  /// confusion.csv (a row a label) and per_class.csv (class, name, samples, correct, percent). Throws Error(data).
  void write(const std::string& folder, const std::vector<std::string>& class_names) const;

 private:
  std::int64_t& at(Index label, Index predicted) {
    return counts_[static_cast<std::size_t>(label * classes_ + predicted)];
  }
  Index classes_;
  std::vector<std::int64_t> counts_;
};

}  // namespace convoy
