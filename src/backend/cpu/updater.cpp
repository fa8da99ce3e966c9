// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/updater.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "backend/cpu/orthogonal.hpp"
#include "backend/cpu/parallel.hpp"
#include "backend/rules/moving_average.hpp"
#include "core/errors.hpp"
#include "optim/clip.hpp"

namespace convoy::cpu {
namespace {

/// Threads share the pieces of all tensors; pieces are small enough that a network of one big layer has many. Norms
/// are summed piece by piece in their order, so they depend on the table alone.
constexpr Index piece_floats = 1 << 14;

struct Piece {
  Range range;
  Index tensor = 0;
  float decay = 0, rate_multiplier = 1;
  bool is_weight = true, in_matrix = false;
  Index rate_ends = never;
};

/// What a matrix rule updates as one matrix.
struct Matrix {
  Range range;
  MatrixShape shape;
  float decay = 0, rate_multiplier = 1;
  Index rate_ends = never;

  Index scratch() const { return align_floats(shape.count()) + orthogonal_floats(shape); }
};

/// Matrices of fewer multiply-adds are updated one per thread, others one after the other by all threads.
constexpr double small_matrix_macs = 1 << 26;

/// For a layer-wise rule: squares summed over a piece, and the ratio of its tensor.
struct PieceNorms {
  double weight = 0, measured = 0, ratio = 1;
};

struct Norm {
  Range mean, variance;
  float momentum;
};

template <class R, class... Slot>
void update(Index count, const UpdateFactors& factors, const float* __restrict g, float* __restrict w,
            Slot* __restrict... slots) {
#pragma omp simd
  for (Index i = 0; i < count; ++i) w[i] = R::update(factors, w[i], g[i], slots[i]...);
}

template <class R, class... Slot>
PieceNorms measure(Index count, const UpdateFactors& factors, const float* g, const float* w, const Slot*... slots) {
  double weight = 0, measured = 0;
#pragma omp simd reduction(+ : weight, measured)
  for (Index i = 0; i < count; ++i) {
    const auto of_w = static_cast<double>(w[i]);
    const auto of_g = static_cast<double>(R::measured(factors, w[i], g[i], slots[i]...));
    weight += of_w * of_w;
    measured += of_g * of_g;
  }
  return {weight, measured};
}

class CpuUpdater final : public Updater {
 public:
  CpuUpdater(const Plan& plan, const OptimiserSpec& spec, const StepParams& current, Counters& counters)
      : spec_(spec),
        layout_(set_layout(plan.table, spec)),
        tail_(plan.table.statistics),
        flags_(plan.table.flags),
        current_(current),
        counters_(counters),
        threads_(omp_get_max_threads()) {
    if (with_optimiser(spec_.rule, [](auto rule) { return is_matrix_rule<decltype(rule)>; })) find_matrices(plan);
    for (Index tensor = 0; const Parameter& row : plan.table.rows) {
      ++tensor;
      if (!row.trainable) continue;
      for (Index at = 0; at < row.range.count; at += piece_floats) {
        pieces_.push_back({{row.range.begin + at, std::min(piece_floats, row.range.count - at)},
                           tensor,
                           row.decay,
                           row.rate_multiplier,
                           row.kind == Kind::weight,
                           !matrices_.empty() && row.is_matrix(),
                           row.rate_ends});
      }
    }
    for (const NormStatistics& norm : plan.table.norms) {
      if (norm.frozen) continue;
      const auto* attributes = as<BatchNorm>(plan.graph.nodes.at(static_cast<std::size_t>(norm.node)));
      require(attributes != nullptr, "statistics of a node that is no batch norm");
      norms_.push_back({norm.mean, norm.variance, attributes->momentum});
    }
  }

  /// squares of pieces, for clipping | norms of pieces, for a layer-wise rule | scratch of matrices.
  Index arena_floats() const override {
    return squares_floats() + norms_floats() + std::max(large_scratch_, threads_ * small_scratch_);
  }
  void bind(float* arena) override {
    squares_ = reinterpret_cast<double*>(arena);
    norms_of_pieces_ = reinterpret_cast<PieceNorms*>(arena + squares_floats());
    scratch_ = arena + squares_floats() + norms_floats();
  }

  void launch(const ParameterSet& set, const float* gradients) override {
    require(set.count == layout_.count(), "a parameter set of another layout");
    DeviceState& state = *layout_.device_state(set.block);
    const int bad = first_flagged(gradients);
    if (bad >= 0) {
      state.skipped += 1;
      ++counters_.skipped;
      counters_.bad_replica = counters_.bad_replica < 0 ? bad : std::min(counters_.bad_replica, bad);
      return;
    }
    const float clip = spec_.clip_norm > 0 ? static_cast<float>(clip_factor(norm(gradients), spec_.clip_norm)) : 1.0F;
    state.applied += 1;
    UpdateFactors factors{current_.learning_rate, 0, clip, {}};
    with_optimiser(spec_.rule, [&](auto rule) {
      using R = decltype(rule);
      const double step = static_cast<double>(state.applied) - static_cast<double>(state.slots_zeroed);
      R::prepare(current_.options, step, factors.numbers);
      constexpr auto slots = std::make_index_sequence<R::slots.size()>();
      if constexpr (is_layerwise<R>) find_ratios<R>(set, gradients, factors, slots);
      if constexpr (is_matrix_rule<R>) update_matrices<R>(set, gradients, factors, slots);
      update_all<R>(set, gradients, factors, slots);
    });
    fold_statistics(set, gradients);
  }

 private:
  Index squares_floats() const {
    return spec_.clip_norm > 0 ? align_floats(2 * static_cast<Index>(pieces_.size())) : 0;
  }

  Index norms_floats() const {
    const bool layerwise = with_optimiser(spec_.rule, [](auto rule) { return is_layerwise<decltype(rule)>; });
    if (!layerwise) return 0;
    return align_floats(static_cast<Index>(pieces_.size() * sizeof(PieceNorms) / sizeof(float)));
  }

  /// Small ones first, the most expensive of them in front.
  void find_matrices(const Plan& plan) {
    for (const Parameter& row : plan.table.rows) {
      if (!row.is_matrix()) continue;
      const Index rows = row.shape.front();
      matrices_.push_back({row.range, {rows, row.range.count / rows}, row.decay, row.rate_multiplier, row.rate_ends});
    }
    const auto is_small = [](const Matrix& m) { return m.shape.macs() < small_matrix_macs; };
    const auto large = std::stable_partition(matrices_.begin(), matrices_.end(), is_small);
    std::stable_sort(matrices_.begin(), large,
                     [](const Matrix& a, const Matrix& b) { return a.shape.macs() > b.shape.macs(); });
    small_count_ = large - matrices_.begin();
    for (const Matrix& matrix : matrices_) {
      Index& most = is_small(matrix) ? small_scratch_ : large_scratch_;
      most = std::max(most, matrix.scratch());
    }
  }

  /// Returns the replica with the lowest flag above 0, or -1 if all are 0. A flag holds 1 + the first stage that wasn't
  /// finite. With synchronised batch norm the other replicas follow the one where it began, at later stages.
  int first_flagged(const float* gradients) const {
    int found = -1;
    for (Index i = 0; i < flags_.count; ++i) {
      const float flag = gradients[flags_.begin + i];
      if (flag == 0 || (found >= 0 && !(flag < gradients[flags_.begin + found]))) continue;
      found = static_cast<int>(i);
    }
    return found;
  }

  /// Returns the norm of all trainable parameters' gradients.
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

  UpdateFactors factors_of(const Piece& piece, UpdateFactors factors) const {
    factors.learning_rate *= current_.step < piece.rate_ends ? piece.rate_multiplier : 0.0F;
    factors.decay = piece.decay;
    return factors;
  }

  template <class R, std::size_t... Slot>
  void find_ratios(const ParameterSet& set, const float* gradients, const UpdateFactors& all,
                   std::index_sequence<Slot...>) const {
    const auto pieces = static_cast<Index>(pieces_.size());
#pragma omp parallel for schedule(static)
    for (Index p = 0; p < pieces; ++p) {
      const Piece& piece = pieces_[static_cast<std::size_t>(p)];
      const Index begin = piece.range.begin;
      norms_of_pieces_[p] =
          measure<R>(piece.range.count, factors_of(piece, all), gradients + begin,
                     set.block + layout_.values.begin + begin, (set.block + layout_.slot(Slot).begin + begin)...);
    }
    for (Index p = 0; p < pieces;) {
      const Piece& first = pieces_[static_cast<std::size_t>(p)];
      PieceNorms sums;
      Index end = p;
      for (; end < pieces && pieces_[static_cast<std::size_t>(end)].tensor == first.tensor; ++end) {
        sums.weight += norms_of_pieces_[end].weight;
        sums.measured += norms_of_pieces_[end].measured;
      }
      const double ratio =
          R::ratio(all.numbers, {std::sqrt(sums.weight), std::sqrt(sums.measured), first.decay, first.is_weight});
      for (; p < end; ++p) norms_of_pieces_[p].ratio = ratio;
    }
  }

  template <class R, std::size_t... Slot>
  bool update_matrix(const Matrix& matrix, const ParameterSet& set, const float* gradients, UpdateFactors factors,
                     float* scratch, std::index_sequence<Slot...>) const {
    factors.learning_rate *= current_.step < matrix.rate_ends ? matrix.rate_multiplier : 0.0F;
    factors.decay = matrix.decay;
    const auto [rows, columns] = matrix.shape;
    factors.ratio =
        static_cast<float>(R::matrix_ratio(factors.numbers, static_cast<double>(rows), static_cast<double>(columns)));
    const Index first = matrix.range.begin;
    float* const w = set.block + layout_.values.begin + first;
    split_units(matrix.range.count, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i)
        scratch[i] = R::gathered(factors, gradients[first + i], set.block[layout_.slot(Slot).begin + first + i]...);
    });
    const bool good = orthogonalise(matrix.shape, scratch, scratch + align_floats(matrix.range.count));
    split_units(matrix.range.count, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) w[i] = R::matrix_update(factors, w[i], scratch[i]);
    });
    return good;
  }

  template <class R, class Slots>
  void update_matrices(const ParameterSet& set, const float* gradients, const UpdateFactors& all, Slots slots) const {
    std::atomic<bool> good{true};
    const int threads = std::min(threads_, omp_get_max_threads());
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (Index m = 0; m < small_count_; ++m) {
      float* const scratch = scratch_ + omp_get_thread_num() * small_scratch_;
      if (!update_matrix<R>(matrices_[static_cast<std::size_t>(m)], set, gradients, all, scratch, slots)) good = false;
    }
    for (auto m = static_cast<std::size_t>(small_count_); m < matrices_.size(); ++m)
      if (!update_matrix<R>(matrices_[m], set, gradients, all, scratch_, slots)) good = false;
    if (!good) fail(Exit::device, "a matrix product of oneDNN failed in the update (likely out of memory)");
  }

  /// `all`: the factors before those of each tensor are filled in.
  template <class R, std::size_t... Slot>
  void update_all(const ParameterSet& set, const float* gradients, const UpdateFactors& all,
                  std::index_sequence<Slot...>) const {
#pragma omp parallel for schedule(static)
    for (Index p = 0; p < static_cast<Index>(pieces_.size()); ++p) {
      const Piece& piece = pieces_[static_cast<std::size_t>(p)];
      if (piece.in_matrix) continue;
      const Index begin = piece.range.begin;
      UpdateFactors factors = factors_of(piece, all);
      if constexpr (is_layerwise<R>) factors.ratio = static_cast<float>(norms_of_pieces_[p].ratio);
      update<R>(piece.range.count, factors, gradients + begin, set.block + layout_.values.begin + begin,
                (set.block + layout_.slot(Slot).begin + begin)...);
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
  PieceNorms* norms_of_pieces_ = nullptr;
  int threads_;  ///< that may have scratch memory
  std::vector<Matrix> matrices_;
  Index small_count_ = 0, small_scratch_ = 0, large_scratch_ = 0;
  float* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<Updater> make_updater(const Plan& plan, const OptimiserSpec& spec, const StepParams& current,
                                      Counters& counters) {
  return std::make_unique<CpuUpdater>(plan, spec, current, counters);
}

}  // namespace convoy::cpu
