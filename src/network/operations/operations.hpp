// SPDX-License-Identifier: Apache-2.0
// The list of operations; operation.hpp says what each brings. Tensors are n c h w; linear and loss see n c.
#pragma once
#include <variant>

#include "network/operations/activation.hpp"
#include "network/operations/adaptive_average_pool.hpp"
#include "network/operations/add.hpp"
#include "network/operations/batch_norm.hpp"
#include "network/operations/channel_gate.hpp"
#include "network/operations/concatenation.hpp"
#include "network/operations/convolution.hpp"
#include "network/operations/dropout.hpp"
#include "network/operations/flatten.hpp"
#include "network/operations/global_average_pool.hpp"
#include "network/operations/input.hpp"
#include "network/operations/linear.hpp"
#include "network/operations/local_response_norm.hpp"
#include "network/operations/loss.hpp"
#include "network/operations/pool.hpp"

namespace convoy {

template <Operation... Each>
using AnyOf = std::variant<Each...>;

using Attributes = AnyOf<Input, Convolution, BatchNorm, Activation, Pool, GlobalAveragePool, AdaptiveAveragePool,
                         Linear, LocalResponseNorm, Dropout, Add, Concatenation, ChannelGate, Flatten, Loss>;

}  // namespace convoy
