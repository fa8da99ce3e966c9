// SPDX-License-Identifier: Apache-2.0
// What a run says of itself: one console line per interval for the whole job, metrics.jsonl (docs/metrics.md is its
// schema), TensorBoard events, an epoch table. Rank 0 only; the numbers given are already the job's.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/counters.hpp"
#include "core/types.hpp"
#include "metrics/rank_times.hpp"

namespace convoy {

/// Sums over the steps of an interval, over all ranks where it says so. Epochs count from 1, steps are steps done.
struct StepRecord {
  Index epoch = 0, step = 0, step_in_epoch = 0, steps_per_epoch = 0;
  Index images = 0;          ///< of the interval, all ranks
  Index images_seen = 0;     ///< of the run
  CounterValues counters{};  ///< of the interval, as shown
  double rate = 0;
  double seconds = 0;  ///< of the interval
  double data_seconds = 0, compute_seconds = 0,
         comm_seconds = 0;  ///< mean over ranks; the rest of `seconds` is `other`
  double eta_seconds = 0;
};

/// What the last line of a terminal shows between two lines of the log.
struct StepProgress {
  Index epoch = 0, step_in_epoch = 0, steps_per_epoch = 0;
  double images_per_second = 0, loss = 0, eta_seconds = 0;  ///< NaN: not known yet
};

struct ValidationRecord {
  Index epoch = 0, step = 0, images = 0;
  Index images_seen = 0;     ///< in training, until then
  CounterValues counters{};  ///< as shown
  double seconds = 0;
  int k = 5;
  Index split_images = 0;  ///< of the whole split, if --limit-val-batches took a part of it; else 0
  bool is_partial() const { return split_images > 0; }
  /// Images behind a counter in percent.
  Index count(Counter counter) const { return samples_of(counters[counter], images); }
};

struct EpochRecord {
  Index epoch = 0, images = 0;
  Index images_seen = 0;     ///< of the run, at the end of the epoch
  CounterValues counters{};  ///< as shown
  double seconds = 0, rate = 0;
  double data_seconds = 0, compute_seconds = 0, comm_seconds = 0;
  Index sent_bytes = -1;        ///< of sums, from rank to rank, of all ranks since the attempt began or the last record
  Index group_sent_bytes = -1;  ///< the same of averages within groups of replicas; -1: there are no groups
  RankSpread ranks;             ///< with one rank there is nothing to compare
};

/// A count is written as a whole number.
using EventNumber = std::variant<Index, double>;

struct TensorSummary {
  std::string name;
  double norm = 0, minimum = 0, maximum = 0, mean = 0;
  std::vector<double> edges, counts;  ///< histogram; edges has one more entry
  Index not_finite = 0;               ///< NaN or infinite: left out of minimum, maximum and histogram
};
/// Norm, minimum, maximum, mean and a histogram of `bins` equal bins. All equal values: a bin of width 1 around them.
TensorSummary summarise(const std::string& name, const float* values, Index count, int bins = 30);

struct MetricsSpec {
  std::string folder;  ///< the run directory; empty: console only
  bool tensorboard = true;
  bool append = false;    ///< resumed run: what is there stays, up to resume_step
  Index resume_step = 0;  ///< steps done at the checkpoint, as its run counted; records of later steps are cut off
  Index resume_epoch = std::numeric_limits<Index>::max();  ///< records of later epochs are, too
  Index begin_step = -1;                                   ///< the same place as this run counts steps; -1: resume_step
  /// The last validation that this run knows of; one of resume_step is then made and told again.
  Index validated_step = std::numeric_limits<Index>::max();
  int ranks = 1;
  Index epochs = 0;  ///< length of the run, for `epoch 3/10`; 0: not known
  int k = 5;         ///< of topk in train and validation records: the field is named top5
  /// What TensorBoard shows beside the numbers: the configuration file, and the options that runs are compared by.
  std::string configuration;
  std::map<std::string, std::string> hyperparameters;
  /// Is this attempt still the newest? Asked before a file is replaced; none: always.
  std::function<bool()> may_write;
};

class Metrics {
 public:
  explicit Metrics(const MetricsSpec& spec);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  void train(const StepRecord& record);             ///< {"split":"train", ...} and one console line
  void validation(const ValidationRecord& record);  ///< {"split":"val","epoch":..,"top1":percent, ...}
  void epoch(const EpochRecord& record);            ///< {"split":"epoch", ...}, and a line on how even the ranks are
  void tensors(const std::string& group, Index step, const std::vector<TensorSummary>& summaries);  ///< --monitor
  /// {"split":"run", ...}: everything needed to repeat the run, and the final result.
  void event(const std::string& what, const std::map<std::string, std::string>& texts,
             const std::map<std::string, EventNumber>& numbers);
  /// Overwrites the last line of a terminal; nothing elsewhere. Allocates nothing.
  void progress(const StepProgress& now);
  bool has_epochs() const;
  /// epoch / hours / loss / top1 / val top1 / val topk, as text for the log.
  std::string table() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
