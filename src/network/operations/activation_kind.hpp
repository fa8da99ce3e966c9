// SPDX-License-Identifier: Apache-2.0
// C++17, since CUDA kernels include it too.
#pragma once
#include <cstdint>

namespace convoy {

/// The names that users write, and texts: operations/activation.cpp. The formulas: backend/rules/activation.hpp.
/// identity: y = x, which backends say where no activation follows; no network has it as a node. scale: y = slope * x,
/// which networks have at places of their own, and which --activation doesn't know.
enum class ActivationKind : std::uint8_t { identity, relu, leaky_relu, tanh, gelu, silu, relu6, hard_swish, scale };

/// What ChannelGate multiplies by, a function of its second input. The formulas: backend/rules/gate.hpp.
enum class GateKind : std::uint8_t { sigmoid, hard_sigmoid };

}  // namespace convoy
