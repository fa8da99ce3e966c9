// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy {
/// Calls of operator new so far, in a binary that has allocations.cpp among its sources.
long count_allocations();
/// Bytes that they asked for.
long count_allocated_bytes();
}  // namespace convoy
