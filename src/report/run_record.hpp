// SPDX-License-Identifier: Apache-2.0
// What a run directory tells about a run, for people to look at.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace convoy {

struct Point {
  double x = 0, y = 0;  ///< y NaN: no number
};
using Series = std::vector<Point>;

/// Seconds per step of an epoch, means over the ranks, and how evenly the ranks worked.
struct EpochTimes {
  Index epoch = 0;
  double data = 0, compute = 0, comm = 0, other = 0;  ///< seconds of the epoch
  double busy_min = 0, busy_mean = 0, busy_max = 0;   ///< seconds of own work; 0 with one rank
  std::string slowest;                                ///< `rank 3 on node7: data`; empty with one rank
};

/// One of the images with the largest loss.
struct WorstImage {
  std::string name, label, predicted;
  double loss = 0, probability = 0;  ///< probability: of the predicted class
  std::string jpeg;                  ///< base64; empty: there is no picture
};

/// A folder that `convoy evaluate --output-dir` wrote.
struct EvaluationRecord {
  std::string folder, split, checkpoint;
  Index images = 0;
  double top1 = 0, loss = 0;  ///< percent; mean
  std::vector<std::string> classes;
  std::vector<std::vector<Index>> confusion;  ///< [label][predicted class]; empty: not written
  std::vector<WorstImage> worst;              ///< the worst first
};

/// As in config.cfg and in its order, defaults included.
using RunOptions = std::vector<std::pair<std::string, std::string>>;
/// Those of a run directory; empty: it has no config.cfg.
RunOptions read_options(const std::string& folder);
/// `-`: there is none of this name.
std::string value_of(const RunOptions& options, const std::string& name);
/// The names whose values are not the same in all runs.
std::vector<std::string> differing_names(const std::vector<const RunOptions*>& runs);

struct RunRecord {
  std::string folder;
  std::string model = "-", device = "-", build = "-", started = "-";
  Index ranks = 0, replicas = 0, global_batch = 0, epochs = 0;
  double hours = 0;                      ///< of epochs and validations
  std::string result = "-", reason;      ///< as `convoy status` tells
  double best_top1 = 0, best_epoch = 0;  ///< NaN: no validation

  /// Over epochs, which count from 0 at the start: 1.5 is the middle of the second.
  Series train_loss, val_loss, train_top1, val_top1, rate, speed;
  std::vector<EpochTimes> times;
  RunOptions options;
  /// Hosts, MPI, HDF5 and the lines about backends, as environment.json has them: those of the newest attempt.
  RunOptions environment;
  std::vector<EvaluationRecord> evaluations;  ///< from the folders in the run directory
  std::vector<std::string> warnings;          ///< of log.txt, each text once, and of files that can't be read
};

/// What is missing or damaged stays empty: a run that failed early has a record, too. Throws Error(usage) if `folder`
/// is no run directory.
RunRecord read_run_record(const std::string& folder);

/// Throws Error(data) if the files don't fit together.
EvaluationRecord read_evaluation(const std::string& folder);

}  // namespace convoy
