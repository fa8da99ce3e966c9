// SPDX-License-Identifier: Apache-2.0
// For loops that count their registers: one machine register, where vectors.hpp has sixteen lanes whatever it takes.
#pragma once
#include "backend/cpu/vectors.hpp"

namespace convoy::cpu {
namespace {

#ifdef __AVX512F__
using Register = Vector;
using LaneOrder = Integers;
#else
using Register = Vector::Part;
using LaneOrder = Integers::Part;
#endif
}  // namespace

/// Lanes of a register, and registers that hold sixteen lanes. Local to a source: others have other registers.
constexpr int register_lanes = sizeof(Register) / 4, parts = 16 / register_lanes;

namespace {

using Loose = float __attribute__((vector_size(sizeof(Register)), aligned(4), may_alias));
CONVOY_INLINE Register read(const float* from) { return *reinterpret_cast<const Loose*>(from); }
CONVOY_INLINE void write(float* to, Register v) { *reinterpret_cast<Loose*>(to) = v; }

}  // namespace
}  // namespace convoy::cpu
