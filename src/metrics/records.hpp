// SPDX-License-Identifier: Apache-2.0
// The lines of metrics.jsonl and monitor.jsonl; docs/metrics.md is their schema.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "metrics/metrics.hpp"

namespace convoy {

/// Derived from a StepRecord: means of a step, and speeds.
struct StepTimes {
  double step = 0, data = 0, compute = 0, comm = 0, other = 0;  ///< seconds
  double images_per_second = 0;                                 ///< of the whole job
};
StepTimes times_of(const StepRecord& record, Index steps);

/// `data`, `compute` or `comm`: what most of an epoch's time went into.
const char* limit_of(const EpochRecord& record);

/// `steps`: of the interval.
std::string train_line(const StepRecord& record, Index steps, int ranks, int k);
std::string validation_line(const ValidationRecord& record);
/// `step`: steps done at the end of the epoch.
std::string epoch_line(const EpochRecord& record, Index step);
std::string run_line(const std::string& what, const std::map<std::string, std::string>& texts,
                     const std::map<std::string, EventNumber>& numbers);
std::string monitor_line(const std::string& group, Index step, const std::vector<TensorSummary>& summaries);

class EpochTable;
/// Puts epoch and validation lines of an earlier run into the table; others are passed over.
void read_line(const std::string& line, EpochTable& to);

}  // namespace convoy
