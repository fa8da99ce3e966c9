// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "data/dataset.hpp"
#include "data/evaluation.hpp"
#include "engine/engine.hpp"
#include "metrics/metrics.hpp"

namespace convoy {

struct EvaluatorSpec {
  EvaluationSpec batches;
  std::vector<ShapeGroup> split_groups;  ///< rectangular: of the whole split, as all ranks know them; empty: square
  Index limit_batches = 0;               ///< 0: all
  int topk = 5;
  std::size_t phase = 0;   ///< of the engine's programs
  bool flip_test = false;  ///< the mean of an image's logits and its mirror's
};

/// Collective. Of the sums and the samples.
void sum_over_ranks(Communicator& communicator, Counters& counters, const char* what);

/// Exact evaluation: every rank takes a contiguous share of the split, the last batch is masked, counts are summed as
/// integers, so that they don't depend on the number of ranks.
class Evaluator {
 public:
  /// `dataset` holds this rank's share (EvaluationBatches::share) and outlives the evaluator.
  Evaluator(Engine& engine, Collectives& collectives, Communicator& communicator, const Dataset& dataset,
            const EvaluatorSpec& spec);

  /// Told of each batch's valid samples: labels and logits [count][classes] in host memory.
  using Observer = std::function<void(std::span<const SampleSpec>, const float* logits)>;

  /// Asked before each batch, as often on all ranks: true, on all ranks alike, ends the evaluation.
  using StopAgreed = std::function<bool()>;

  /// Collective. Epoch and step of the record are the caller's. Nothing: it was stopped.
  std::optional<ValidationRecord> run(const ParameterSet& set, const StopAgreed& stop_agreed,
                                      const Observer& observe = {});

 private:
  void download(const Program& program, Index count, std::vector<float>& to);
  /// Feeds and launches; a GPU captures the launch of each shape and set.
  void launch(std::size_t shape, const ParameterSet& set, const Batch& batch);
  /// The batch has been launched.
  Counters run_mirrored(std::size_t shape, const ParameterSet& set, const Batch& batch);

  Engine& engine_;
  Collectives& collectives_;
  Communicator& communicator_;
  const Dataset& dataset_;
  EvaluatorSpec spec_;
  EvaluationBatches batches_;
  Index rounds_;  ///< batches of the rank with most
  std::vector<float> logits_, flipped_logits_;
  std::vector<SampleSpec> mirrored_;
};

}  // namespace convoy
