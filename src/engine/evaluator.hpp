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
  /// Pixels; above 0: half of the logits' weight is that of the image, a quarter each that of the image moved up and
  /// left, and down and right. With flip_test each of them and its mirror. The program's input reflects padding.
  Index translate_test = 0;
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
  /// One of the images that an image's logits are the mean of.
  struct View {
    std::int16_t down = 0, right = 0;  ///< pixels by which the window moves
    std::uint8_t mirrored = 0;
    float weight = 1;
  };
  static std::vector<View> views_of(const EvaluatorSpec& spec);
  /// Feeds and launches; a GPU captures the launch of each shape and set.
  void launch(std::size_t shape, const ParameterSet& set, const Batch& batch);
  /// The weighted mean of all views' logits, counted here. The batch, the first view, has been launched.
  Counters run_views(std::size_t shape, const ParameterSet& set, const Batch& batch);

  Engine& engine_;
  Collectives& collectives_;
  Communicator& communicator_;
  const Dataset& dataset_;
  EvaluatorSpec spec_;
  EvaluationBatches batches_;
  Index rounds_;     ///< batches of the rank with most
  bool is_limited_;  ///< to a part of the split
  std::vector<View> views_;
  std::vector<float> logits_, logits_of_view_;
  std::vector<SampleSpec> seen_;  ///< the batch as a view shows it
};

}  // namespace convoy
