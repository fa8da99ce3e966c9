// SPDX-License-Identifier: Apache-2.0
// Whether kernels of ours begin before the launch in front of them has ended, and wait inside (programmatic dependent
// launch): their blocks are on the card already when the wait is over.
#pragma once

namespace convoy::cuda {

/// Whether launches are early: the last result of launch_early().
inline bool launches_early = false;
/// For all launches of this process from now on. False where it isn't possible: on a card before compute capability
/// 9.0, and where the kernels are compiled for an older one, without the instruction that waits.
bool launch_early(bool wanted);

}  // namespace convoy::cuda
