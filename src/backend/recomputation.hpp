// SPDX-License-Identifier: Apache-2.0
// What recomputation does to a training program, in words.
#pragma once
#include <string>

#include "backend/backend.hpp"
#include "core/text.hpp"

namespace convoy {

/// `3 of 16 blocks run forward twice: activations of 1203.4 MB instead of 2799.0 MB, 21 % more arithmetic`. `floats`:
/// of the arena.
inline std::string tell(const Recomputation& recomputation, Index floats) {
  const auto megabytes = [](Index of) { return static_cast<double>(of) * sizeof(float) / 1e6; };
  if (recomputation.found == 0) return "the network has no block that would spare memory if it ran forward twice";
  if (recomputation.blocks == 0)
    return fmt::format("no block runs forward twice; activations take {:.1f} MB", megabytes(floats));
  return fmt::format(
      "{} of {} run forward twice: activations of {:.1f} MB instead of {:.1f} MB, {:.0f} % more arithmetic",
      recomputation.blocks, counted(recomputation.found, "block"), megabytes(floats),
      megabytes(recomputation.floats_without), 100 * recomputation.more_flops);
}

}  // namespace convoy
