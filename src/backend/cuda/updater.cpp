// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/updater.hpp"

#include <optional>
#include <vector>

#include "backend/cuda/kernels/update.hpp"
#include "backend/cuda/matrix_pass.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/set_layout.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

template <class T>
Index bytes_of_all(const std::vector<T>& table) {
  return (static_cast<Index>(table.size() * sizeof(T)) + 63) / 64 * 64;
}

/// Frozen parameters stand behind the others, and keep their copies.
std::vector<UpdatePiece> trained_pieces(const Plan& plan) {
  std::vector<UpdatePiece> pieces = make_copy_layout(plan, Precision::fp32).pieces;
  while (!pieces.empty() && pieces.back().trains == 0) pieces.pop_back();
  return pieces;
}

/// What is known without a device. It lies in the arena as
/// verdict | squares of pieces | norms of pieces | pieces | folds | matrices.
struct UpdateTables {
  std::vector<UpdatePiece> pieces;
  std::vector<NormFold> folds;
  std::optional<MatrixPass> matrices;
  Index squares_bytes = 0, norms_bytes = 0;

  UpdateTables(const Plan& plan, const OptimiserSpec& spec) : pieces(trained_pieces(plan)) {
    with_optimiser(spec.rule, [&](auto rule) {
      using R = decltype(rule);
      if constexpr (is_layerwise<R>) norms_bytes = bytes_each(sizeof(PieceNorms));
      if constexpr (is_matrix_rule<R>) matrices.emplace(plan, pieces);
    });
    if (spec.clip_norm > 0) squares_bytes = bytes_each(sizeof(double));
    for (const NormStatistics& norm : plan.table.norms) {
      if (norm.frozen) continue;
      const auto* attributes = as<BatchNorm>(plan.graph.nodes.at(static_cast<std::size_t>(norm.node)));
      require(attributes != nullptr, "statistics of a node that is no batch norm");
      for (const Range& range : {norm.mean, norm.variance})
        folds.push_back({range.begin, range.count, attributes->momentum});
    }
  }
  Index floats() const {
    static_assert(sizeof(UpdateVerdict) <= 64);
    const Index own = 64 + squares_bytes + norms_bytes + bytes_of_all(pieces) + bytes_of_all(folds);
    return (own + (matrices ? matrices->bytes() : 0)) / 4;
  }

 private:
  Index bytes_each(std::size_t bytes) const { return (static_cast<Index>(pieces.size() * bytes) + 63) / 64 * 64; }
};

class CudaUpdater final : public Updater {
 public:
  CudaUpdater(const Context& context, const Plan& plan, const OptimiserSpec& spec)
      : context_(context),
        spec_(spec),
        layout_(set_layout(plan.table, spec)),
        flags_(plan.table.flags),
        tail_(plan.table.statistics),
        tables_(plan, spec) {}

  Index arena_floats() const override { return tables_.floats(); }

  void bind(float* arena) override {
    auto* at = reinterpret_cast<std::byte*>(arena);
    verdict_ = reinterpret_cast<UpdateVerdict*>(at);
    at += 64;
    squares_ = tables_.squares_bytes > 0 ? reinterpret_cast<double*>(at) : nullptr;
    at += tables_.squares_bytes;
    norms_ = tables_.norms_bytes > 0 ? reinterpret_cast<PieceNorms*>(at) : nullptr;
    at += tables_.norms_bytes;
    device_pieces_ = put(at, tables_.pieces);
    at += bytes_of_all(tables_.pieces);
    device_folds_ = put(at, tables_.folds);
    at += bytes_of_all(tables_.folds);
    if (tables_.matrices) tables_.matrices->bind(context_.queue, at);
  }

  void launch(const ParameterSet& set, const float* gradients) override {
    require(set.count == layout_.count(), "a parameter set of another layout");
    context_.queue.deliver();
    cudaStream_t const stream = context_.queue.stream();
    UpdateArgs args;
    args.values = set.block + layout_.values.begin;
    args.slots = set.block + layout_.optimiser.begin;
    args.slot_floats = layout_.trained.count;
    args.gradients = gradients;
    if (const FilterCopies::Copies* const copies = context_.copies.find(set.block)) {
      args.copies = copies->memory;
      args.storage = copies->layout->storage;
    }
    args.pieces = device_pieces_;
    args.count = static_cast<int>(tables_.pieces.size());
    args.step = context_.step;
    args.verdict = verdict_;
    args.norms = norms_;
    if (squares_ != nullptr) check(piece_squares(args, squares_, stream), "launch of the gradient's norm");
    Decision decision;
    decision.flags = gradients + flags_.begin;
    decision.replicas = static_cast<int>(flags_.count);
    decision.squares = squares_;
    decision.pieces = args.count;
    decision.clip_norm = spec_.clip_norm;
    decision.state = layout_.device_state(set.block);
    decision.step = context_.step;
    decision.grow_every = static_cast<float>(spec_.loss_scale.grow_every);
    decision.counters = context_.counters;
    decision.verdict = verdict_;
    check(decide_update(spec_.rule, decision, stream), "launch of the update's decision");
    check(piece_norms(spec_.rule, args, stream), "launch of the tensors' norms");
    if (tables_.matrices) tables_.matrices->launch(spec_.rule, args, context_.queue);
    args.running = set.block + layout_.statistics.begin;
    args.tail = gradients + tail_.begin;
    args.folds = device_folds_;
    args.fold_count = static_cast<int>(tables_.folds.size());
    check(update(spec_.rule, args, stream), "launch of the update");
  }

 private:
  template <class T>
  const T* put(std::byte* at, const std::vector<T>& table) {
    context_.queue.upload_now(at, table.data(), static_cast<Index>(table.size() * sizeof(T)));
    return reinterpret_cast<const T*>(at);
  }

  const Context context_;
  const OptimiserSpec spec_;
  const SetLayout layout_;
  const Range flags_, tail_;
  UpdateTables tables_;
  UpdateVerdict* verdict_ = nullptr;
  double* squares_ = nullptr;
  PieceNorms* norms_ = nullptr;
  const UpdatePiece* device_pieces_ = nullptr;
  const NormFold* device_folds_ = nullptr;
};

}  // namespace

Index updater_floats(const Plan& plan, const OptimiserSpec& spec) { return UpdateTables(plan, spec).floats(); }

std::unique_ptr<Updater> make_updater(const Context& context, const Plan& plan, const OptimiserSpec& spec) {
  return std::make_unique<CudaUpdater>(context, plan, spec);
}

}  // namespace convoy::cuda
