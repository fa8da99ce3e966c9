// SPDX-License-Identifier: Apache-2.0
// How long a step takes on more hosts than are at hand, from what was measured on few.
#pragma once
#include <string>
#include <vector>

#include "scaling/machine.hpp"
#include "sync/traffic.hpp"

namespace convoy {

/// weak: the batch of a rank stays. strong: that of a step stays and is dealt to the ranks.
enum class ScalingKind : std::uint8_t { weak, strong };

struct PredictedJob {
  std::string model, precision;
  Index image_size = 0;
  StepConditions conditions = {};
  int threads = 0;         ///< of a rank; 0: as many as it has cores
  Index batch = 0;         ///< of a rank; weak
  Index global_batch = 0;  ///< of a step; strong
  Index samples = 0;       ///< an epoch
  double epochs = 0;
};

/// Where the numbers of a prediction come from: one sentence per term, for people.
struct Basis {
  bool measured = false;
  std::string text;
};

struct ScalePrediction {
  int nodes = 0, ranks = 0;
  Index batch = 0, global_batch = 0;  ///< of a rank, of a step
  double compute = 0, sums = 0,
         exposed = 0;                  ///< seconds of a mean step; exposed: of the sums, what computation does not hide
  double step = 0, low = 0, high = 0;  ///< seconds; low, high: with all terms at the ends of their ranges
  double efficiency = 1;               ///< images per second and node, relative to the first prediction of a list
  double hours = 0, node_hours = 0;    ///< of all epochs, without validation and start
  double images_per_second() const { return static_cast<double>(global_batch) / step; }
};

/// Step time, and what it rests on, of one job on one machine.
class Predictor {
 public:
  /// Throws Error(usage) if the machine knows no step time of this network under the job's conditions.
  Predictor(const Machine& machine, const PredictedJob& job);

  /// A policy with these sums. Throws Error(usage) if several nodes are asked for and nothing is known of the links
  /// between them. `global_batch` must be at least one image per rank.
  ScalePrediction predict(const Traffic& traffic, int nodes, ScalingKind scaling) const;
  /// Seconds of one sum over all ranks.
  double sum_seconds(const Traffic::Sum& sum, bool in_a_tree, int nodes) const;
  const std::vector<Basis>& basis() const { return basis_; }

 private:
  enum class At { low, value, high };
  /// Of a step, or of what happens between two averages.
  struct Sums {
    double all = 0, exposed = 0;
  };
  struct Times {
    double compute = 0, sums = 0, exposed = 0;
    double step() const { return compute + exposed; }
  };
  /// Ranks that sum: so many on each of these hosts.
  struct Place {
    int own = 1, hosts = 1;
    int ranks() const { return own * hosts; }
  };
  static double at(const Term& term, At end);
  /// steps_: those of the job's network, measured as the job runs, or as nearly so as there are.
  void choose_steps();
  /// How many times longer work takes since the ranks of a host share its cores.
  double sharing(int ranks, int threads) const;
  double compute_seconds(double batch, At end) const;
  double sum_seconds(const Traffic::Sum& sum, bool in_a_tree, const Place& place, At end) const;
  /// Throws Error(usage) for groups that lie on parts of hosts.
  Place place_of_group(int ranks) const;
  /// The part of sums that computation hides where it goes on beside them.
  double hidden_part(At end) const;
  /// Of one synchronisation after computation of `compute` seconds, beside backward if the traffic says so.
  Sums sums_at_once(const Traffic& traffic, double compute, int nodes, At end) const;
  /// Of one synchronisation beside the next steps.
  Sums sums_late(const Traffic& traffic, double compute, int nodes, At end) const;
  Sums sums_of_group(const Traffic& traffic, At end) const;
  /// `steps`: of the whole job.
  Times times(const Traffic& traffic, double batch, double steps, int nodes, At end) const;

  Machine machine_;
  PredictedJob job_;
  std::vector<StepTime> steps_;  ///< of the job's network, by batch
  std::vector<Basis> basis_;
};

/// One for each count that the job can be dealt to, with efficiencies.
std::vector<ScalePrediction> predict_all(const Predictor& predictor, const std::vector<Traffic>& traffic,
                                         const std::vector<int>& nodes, ScalingKind scaling);

/// `1..512`: powers of two and the end; `1,2,12`: these. Throws std::invalid_argument.
std::vector<int> node_counts(const std::string& text);

}  // namespace convoy
