// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/updater.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/rules/update.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Pieces of tensors are dealt to threads: small enough to share out a network of one big layer. The gradient norm is
/// summed by pieces in their order, so it depends on the table alone.
constexpr Index piece_floats = 1 << 14;

struct Piece {
  Range range;
  float decay, rate_multiplier;
};

struct Norm {
  Range mean, variance;
  float momentum;
};

template <class Formula>
void update(Range range, const UpdateFactors& factors, const float* gradients, float* values, float* velocity) {
  const float* __restrict const g = gradients + range.begin;
  float* __restrict const w = values + range.begin;
  if constexpr (Formula::slots == 0) {
    float none = 0;
    for (Index i = 0; i < range.count; ++i) w[i] = Formula::step(factors, w[i], g[i], none);
  } else {
    float* __restrict const v = velocity + range.begin;
#pragma omp simd
    for (Index i = 0; i < range.count; ++i) w[i] = Formula::step(factors, w[i], g[i], v[i]);
  }
}

class CpuUpdater final : public Updater {
 public:
  CpuUpdater(const Plan& plan, const OptimiserSpec& spec, const StepParams& current, Counters& counters)
      : spec_(spec),
        layout_(set_layout(plan.table, spec)),
        tail_(plan.table.statistics),
        flags_(plan.table.flags),
        current_(current),
        counters_(counters) {
    for (const Parameter& row : plan.table.rows) {
      if (!row.trainable) continue;
      for (Index at = 0; at < row.range.count; at += piece_floats) {
        pieces_.push_back(
            {{row.range.begin + at, std::min(piece_floats, row.range.count - at)}, row.decay, row.rate_multiplier});
      }
    }
    for (const NormStatistics& norm : plan.table.norms) {
      const auto* attributes = as<BatchNorm>(plan.graph.nodes.at(static_cast<std::size_t>(norm.node)));
      require(attributes != nullptr, "statistics of a node that is no batch norm");
      norms_.push_back({norm.mean, norm.variance, attributes->momentum});
    }
  }

  /// One double a piece, where the norm is needed.
  Index arena_floats() const override {
    return spec_.clip_norm > 0 ? align_floats(2 * static_cast<Index>(pieces_.size())) : 0;
  }
  void bind(float* arena) override { squares_ = reinterpret_cast<double*>(arena); }

  void launch(const ParameterSet& set, const float* gradients) override {
    require(set.count == layout_.count(), "a parameter set of another layout");
    float* const state = set.block + layout_.state.begin;
    const int bad = first_flagged(gradients);
    if (bad >= 0) {
      state[3] += 1;
      ++counters_.skipped;
      counters_.bad_replica = counters_.bad_replica < 0 ? bad : std::min(counters_.bad_replica, bad);
      return;
    }
    const float clip = spec_.clip_norm > 0 ? static_cast<float>(clip_factor(norm(gradients), spec_.clip_norm)) : 1.0F;
    switch (spec_.rule) {
      case Rule::sgd:
        update_all<SgdRule>(set, gradients, clip);
        break;
      case Rule::momentum:
        update_all<MomentumRule>(set, gradients, clip);
        break;
      case Rule::nesterov:
        update_all<NesterovRule>(set, gradients, clip);
        break;
    }
    fold_statistics(set, gradients);
    state[2] += 1;
  }

 private:
  /// The replica whose flag is lowest above 0: flags hold 1 + the first stage that wasn't finite, and where batch norm
  /// is synchronised the others follow the one where it began. -1: none.
  int first_flagged(const float* gradients) const {
    int found = -1;
    for (Index i = 0; i < flags_.count; ++i) {
      const float flag = gradients[flags_.begin + i];
      if (flag == 0 || (found >= 0 && !(flag < gradients[flags_.begin + found]))) continue;
      found = static_cast<int>(i);
    }
    return found;
  }

  /// Of all trainable parameters' gradients.
  double norm(const float* gradients) const {
    const auto pieces = static_cast<Index>(pieces_.size());
#pragma omp parallel for schedule(static)
    for (Index p = 0; p < pieces; ++p) {
      const Range range = pieces_[static_cast<std::size_t>(p)].range;
      const float* const g = gradients + range.begin;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (Index i = 0; i < range.count; ++i) sum += static_cast<double>(g[i]) * g[i];
      squares_[p] = sum;
    }
    double total = 0;
    for (Index p = 0; p < pieces; ++p) total += squares_[p];
    return std::sqrt(total);
  }

  template <class Formula>
  void update_all(const ParameterSet& set, const float* gradients, float clip) const {
    float* const values = set.block + layout_.values.begin;
    float* const velocity = set.block + layout_.optimiser.begin;
#pragma omp parallel for schedule(static)
    for (Index p = 0; p < static_cast<Index>(pieces_.size()); ++p) {
      const Piece& piece = pieces_[static_cast<std::size_t>(p)];
      update<Formula>(piece.range, {current_.rate * piece.rate_multiplier, current_.momentum, piece.decay, clip},
                      gradients, values, velocity);
    }
  }

  void fold_statistics(const ParameterSet& set, const float* gradients) const {
    float* const running = set.block + layout_.statistics.begin;
    const float* const batch = gradients + tail_.begin;
    for (const Norm& norm : norms_) {
      for (const Range range : {norm.mean, norm.variance}) {
        for (Index i = range.begin; i < range.end(); ++i)
          running[i] = fold_statistic(running[i], batch[i], norm.momentum);
      }
    }
  }

  OptimiserSpec spec_;
  SetLayout layout_;
  Range tail_, flags_;
  const StepParams& current_;
  Counters& counters_;
  std::vector<Piece> pieces_;
  std::vector<Norm> norms_;
  double* squares_ = nullptr;
};

}  // namespace

std::unique_ptr<Updater> make_updater(const Plan& plan, const OptimiserSpec& spec, const StepParams& current,
                                      Counters& counters) {
  return std::make_unique<CpuUpdater>(plan, spec, current, counters);
}

}  // namespace convoy::cpu
