// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy {

/// The device state at the end of a parameter set. Counts are exact up to 2^24 and stay there.
struct DeviceState {
  float loss_scale;
  float good_steps;    ///< applied since the loss scale changed
  float applied;       ///< updates
  float skipped;       ///< updates that a replica's flag masked
  float slots_zeroed;  ///< `applied` when the optimiser's slots were last set to zero
  float reserved[11];
};
inline constexpr int device_state_floats = sizeof(DeviceState) / sizeof(float);
static_assert(device_state_floats == 16, "checkpoints store 16 floats");

}  // namespace convoy
