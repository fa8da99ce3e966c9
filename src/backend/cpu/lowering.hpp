// SPDX-License-Identifier: Apache-2.0
// The plan lowered with the CPU's layouts. It depends on the plan only, never on sizes, precision or machine: the stage
// table follows it.
#pragma once
#include "backend/lowering/lowering.hpp"

namespace convoy::cpu {

using lowering::Lowering;
using lowering::Norm;
using lowering::Term;
using lowering::Value;
using lowering::ValueKind;

/// How a value lies in memory. image: what the input stage makes. spatial: the program's memory format and precision.
/// features: fp32 rows [n][c], which linear layers and the loss read.
enum class TensorKind : std::uint8_t { image, spatial, features };

inline TensorKind kind_of(const Value& value) { return static_cast<TensorKind>(value.layout.order); }

/// Throws Error(internal) for an operation that the backend doesn't know.
Lowering lower(const Plan& plan, Mode mode);

}  // namespace convoy::cpu
