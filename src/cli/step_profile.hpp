// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "backend/profile.hpp"
#include "core/types.hpp"

namespace convoy {

/// Where the time of steps went: for each part of the program the median of its times, its FLOP and bytes, and how near
/// it comes to the roofline, max(FLOP / rate of products, bytes / rate of copies) / time. Winograd needs fewer products
/// than are counted, so its share may exceed 1.
class StepProfile {
 public:
  StepProfile(std::vector<ProgramPart> parts, const Ceilings& ceilings, Index samples);

  /// One step: seconds of each part, and of the step as the host saw it.
  void add(const std::vector<double>& part_seconds, double step_seconds);

  /// A table, the longest part first, then their sum and what a step takes outside the parts (update, sums over ranks).
  std::string text() const;
  /// All parts in order of execution.
  std::string csv() const;

 private:
  struct Row {
    ProgramPart part;
    std::vector<double> seconds;
  };
  double roofline_seconds(const ProgramPart& part) const;

  std::vector<Row> rows_;
  std::vector<double> steps_, outside_;
  const Ceilings ceilings_;
  const Index samples_;
};

}  // namespace convoy
