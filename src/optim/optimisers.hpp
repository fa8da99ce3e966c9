// SPDX-License-Identifier: Apache-2.0
// The optimisers. A new one is a header beside this one and its lines here; C++17, since CUDA kernels include it.
#pragma once
#include <cstdint>

#include "optim/adamw.hpp"
#include "optim/momentum.hpp"
#include "optim/nesterov.hpp"
#include "optim/sgd.hpp"

namespace convoy {

enum class Rule : std::uint8_t { sgd, momentum, nesterov, adamw };
inline constexpr std::array all_rules{Rule::sgd, Rule::momentum, Rule::nesterov, Rule::adamw};

/// Calls `f` with an object of the rule's type.
template <class F>
decltype(auto) with_optimiser(Rule rule, F&& f) {
  switch (rule) {
    case Rule::sgd:
      return f(Sgd{});
    case Rule::momentum:
      return f(Momentum{});
    case Rule::nesterov:
      return f(Nesterov{});
    case Rule::adamw:
      return f(AdamW{});
  }
  __builtin_unreachable();
}

}  // namespace convoy
