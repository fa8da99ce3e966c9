// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "preprocess/options.hpp"

namespace convoy::preparation {

/// Collective. Turns the samples of any source into partitions: reads and spills them once, orders them, writes them.
/// Returns the code with which all ranks leave; errors have been reported.
Exit prepare(Communicator& communicator, const PrepareSpec& spec);

/// Collective. Checks every byte of every partition against its checksum and prints what it finds. Returns Exit::data
/// where something is wrong.
Exit verify(Communicator& communicator, const VerifySpec& spec);

/// Prints what a folder holds. Throws Error(data).
void inspect(const InspectSpec& spec);

}  // namespace convoy::preparation
