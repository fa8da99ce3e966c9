// SPDX-License-Identifier: Apache-2.0
// An optimiser step over a parameter table, masked by the replicas' flags. It also writes the copies of filters that
// convolutions read (KRSC in storage), folds batch statistics and keeps the loss scale.
#pragma once
#include "backend/cuda/kernels/orthogonal.hpp"
#include "backend/cuda/kernels/types.hpp"
#include "backend/rules/device_state.hpp"
#include "optim/optimisers.hpp"

namespace convoy::cuda {

/// A piece of one tensor: `channels` of k's [k, k + ks). One block's work, at most piece_elements elements of the
/// canonical layout [k][c][rs]. copy < 0: no copy.
struct UpdatePiece {
  Index begin = 0;                            ///< of its first element, in the values block
  Index copy = -1;                            ///< of the element (k, first channel, 0) in the copies, in elements
  std::int32_t ks = 1, channels = 1, rs = 1;  ///< elements = ks * channels * rs, contiguous from begin
  std::int32_t stored_c = 1;                  ///< channels of a copy's row; k rows are rs * stored_c apart
  float decay = 0, rate_multiplier = 1;
  Index rate_ends = INT64_MAX;  ///< from this step on the learning rate is 0
  std::int32_t trains = 1;
  std::int32_t is_weight = 1;                     ///< as TensorNorms
  std::int32_t first_piece = 0, piece_count = 1;  ///< of the tensor
  std::int32_t matrix = -1;  ///< to a matrix rule: which of UpdateArgs::matrices it is a piece of; -1: of none
};
inline constexpr int piece_elements = 4096;

struct NormFold {
  Index begin = 0, count = 0;  ///< in the statistics block and the tail
  float momentum = 0;
};

/// What decide_update decides for all kernels of one update.
struct UpdateVerdict {
  std::int32_t apply = 0;  ///< 0: skipped
  float clip = 1;
  float numbers[max_rule_numbers] = {};  ///< as UpdateFactors
};

/// For a layer-wise rule: squares summed over a piece.
struct PieceNorms {
  double weight, measured;
};

struct UpdateArgs {
  float* values = nullptr;
  float* slots = nullptr;  ///< the rule's, one behind the other
  Index slot_floats = 0;   ///< from one to the next
  const float* gradients = nullptr;
  void* copies = nullptr;  ///< null: the set has none
  Storage storage = Storage::f32;
  const UpdatePiece* pieces = nullptr;
  int count = 0;
  const StepNumbers* step = nullptr;
  UpdateVerdict* verdict = nullptr;
  PieceNorms* norms = nullptr;  ///< of all pieces; null: the rule is not layer-wise
  const UpdateMatrix* matrices = nullptr;
  float* gathered = nullptr;  ///< of matrices: written by gather_matrices, and orthogonal when update() reads it
  /// running = (1 - momentum) * running + momentum * tail, by blocks behind those of the pieces.
  float* running = nullptr;
  const float* tail = nullptr;
  const NormFold* folds = nullptr;
  int fold_count = 0;
};

/// squares[piece] = sum g * g of each piece that trains, in double.
cudaError_t piece_squares(const UpdateArgs& args, double* squares, cudaStream_t stream);

struct Decision {
  const float* flags = nullptr;
  int replicas = 0;
  const double* squares = nullptr;  ///< null: no clipping
  int pieces = 0;
  float clip_norm = 0;
  DeviceState* state = nullptr;
  const StepNumbers* step = nullptr;
  float grow_every = 0;  ///< good steps until the loss scale doubles; 0: it stays
  Counters* counters = nullptr;
  UpdateVerdict* verdict = nullptr;
};
/// One block looks at flags and norm, and writes loss scale, counters and the numbers of the rule.
cudaError_t decide_update(Rule rule, const Decision& decision, cudaStream_t stream);
/// What a layer-wise rule measures, of each piece that trains.
cudaError_t piece_norms(Rule rule, const UpdateArgs& args, cudaStream_t stream);
/// What a matrix rule gathers into matrices, and squares[piece] = its sum of squares; updates slots.
cudaError_t gather_matrices(Rule rule, const UpdateArgs& args, double* squares, cudaStream_t stream);
/// Updates all tensors and running statistics by one launch, unless skipped.
cudaError_t update(Rule rule, const UpdateArgs& args, cudaStream_t stream);
/// Writes the copies of all tensors from the values as they are.
cudaError_t refresh_copies(const UpdateArgs& args, cudaStream_t stream);

}  // namespace convoy::cuda
