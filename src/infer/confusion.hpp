// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace convoy {

/// Counts over the samples of all ranks: of each class, and up to most_classes of each (label, predicted class).
class Confusion {
 public:
  explicit Confusion(Index classes);
  /// `logits` [samples][classes], host memory. Ties go to the lower class, as in the accuracy counters.
  void add(std::span<const SampleSpec> samples, const float* logits);
  /// Collective.
  void sum(Communicator& communicator);
  /// per_class.csv (class, name, samples, correct, percent) and, up to most_classes, confusion.csv (one row per label).
  /// Throws Error(data).
  void write(const std::string& folder, const std::vector<std::string>& class_names) const;

 private:
  /// Nobody can read a larger confusion matrix.
  static constexpr Index most_classes = 1000;
  bool has_matrix() const { return classes_ <= most_classes; }
  Index classes_;
  std::vector<std::int64_t> samples_, correct_;  ///< of each label
  std::vector<std::int64_t> counts_;             ///< [label][predicted]; empty for more classes
};

}  // namespace convoy
