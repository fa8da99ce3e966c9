// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/step.hpp"

namespace convoy::cpu {

class StepBuilder;

/// The tensor in the other storage, with the same strides.
void add_storage_conversion(const TensorLayout& from_layout, Operand from, Operand to, StepBuilder& steps);

/// Converts between the order n c h w in fp32 (`plain`) and any layout.
enum class OrderTo : std::uint8_t { plain, layout };
void add_reordering(const TensorLayout& layout, OrderTo to, Operand from, Operand out, StepBuilder& steps);

}  // namespace convoy::cpu
