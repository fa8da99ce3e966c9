// SPDX-License-Identifier: Apache-2.0
// Lowered values in order of execution: a list of *phases*. A phase runs its actions tile by tile (a few images at a
// time), so that what one action writes is still in cache when the next reads it; only between phases does the whole
// batch meet, as batch norm and weight gradients demand. An unfused operation is a phase with one action. Still free of
// sizes.
#pragma once
#include <array>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/lowering.hpp"

namespace convoy::cpu {

/// Where an action finds a tensor.
struct Buffer {
  enum class Where : std::uint8_t { none, stored, tile };
  Where where = Where::none;
  int index = -1;  ///< stored: of Schedule::tensors; tile: of PhasePlan::tiles
  explicit operator bool() const { return where != Where::none; }
  bool operator==(const Buffer&) const = default;
};

enum class ActionKind : std::uint8_t {
  evaluate,                 ///< group: in = its terms
  statistics,               ///< in = the value
  convolve,                 ///< in = source
  weight_gradient,          ///< in = source, dy
  data_gradient,            ///< in = dy
  collect,                  ///< in = see collect_* below; out = gradient of `value`
  pool,                     ///< in = source; extra = winners of max pooling
  pool_gradient,            ///< in = dy; extra = winners
  local_response,           ///< in = source
  local_response_gradient,  ///< in = source, dy
  dropout,
  dropout_gradient,
  global_pool,
  global_pool_gradient,
  convert,
  convert_gradient,
  linear,           ///< in = source
  linear_gradient,  ///< in = source, dy; out may be missing
  input,            ///< out = images
  loss,             ///< in = logits; out = gradient, missing unless training
};

/// Places of collect's inputs in Action::in.
enum CollectInput { collect_gradient, collect_self, collect_second, collect_output, collect_norm0, collect_norm1 };

struct Action {
  ActionKind kind{};
  int value = 0;  ///< whose geometry it is
  std::array<Buffer, 6> in{};
  Buffer out{}, extra{};
  int norm = -1;                     ///< collect: batch norm that its gradient comes through
  std::array<int, 2> norms{-1, -1};  ///< collect: batch norms that its result goes into
};

/// A tensor of the whole batch, alive from its first to its last phase.
struct StoredTensor {
  int value = 0;
  bool winners = false;  ///< 16-bit places of max pooling instead of the value's elements
  int first_phase = -1, last_phase = -1;
};

struct PhasePlan {
  std::vector<Action> actions;
  std::vector<int> tiles;          ///< values whose geometry the tile buffers have
  std::vector<int> statistics_of;  ///< values whose statistics are complete at its end
  std::vector<int> products_of;    ///< norms whose gradient sums are complete at its end
  std::vector<int> final_rows;     ///< parameters whose gradients are complete at its end
  bool backward = false;
  bool whole = false;  ///< holds an action that takes the whole batch at once
};

struct Schedule {
  std::vector<PhasePlan> phases;
  std::vector<StoredTensor> tensors;
  std::vector<Buffer> value_buffers;  ///< per value; none: never stored
};

Schedule make_schedule(const Plan& plan, const Lowering& lowering, Mode mode);

/// First and last phase of every stored tensor, from the actions that touch it.
void find_lifetimes(Schedule& schedule);

/// A stage = phases up to (not including) `end_phase`, then its row of Program::stages().
struct Stage {
  std::size_t end_phase = 0;
  ReadyRange ready;
};
std::vector<Stage> make_stages(const Plan& plan, const Lowering& lowering, const Schedule& schedule, Mode mode);

}  // namespace convoy::cpu
