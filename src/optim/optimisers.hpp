// SPDX-License-Identifier: Apache-2.0
// The optimisers. A new one is a header beside this one and its lines here; C++17, since CUDA kernels include it.
#pragma once
#include <cstdint>

#include "optim/adagrad.hpp"
#include "optim/adam.hpp"
#include "optim/adamw.hpp"
#include "optim/lamb.hpp"
#include "optim/lars.hpp"
#include "optim/muon.hpp"
#include "optim/nesterov.hpp"
#include "optim/rmsprop.hpp"
#include "optim/sgd.hpp"
#include "optim/signum.hpp"

namespace convoy {

enum class Rule : std::uint8_t { sgd, nesterov, adam, adamw, rmsprop, adagrad, signum, lars, lamb, muon };
inline constexpr std::array all_rules{Rule::sgd,     Rule::nesterov, Rule::adam, Rule::adamw, Rule::rmsprop,
                                      Rule::adagrad, Rule::signum,   Rule::lars, Rule::lamb,  Rule::muon};

/// Calls `f` with an object of the rule's type.
template <class F>
decltype(auto) with_optimiser(Rule rule, F&& f) {
  switch (rule) {
    case Rule::sgd:
      return f(Sgd{});
    case Rule::nesterov:
      return f(Nesterov{});
    case Rule::adam:
      return f(Adam{});
    case Rule::adamw:
      return f(AdamW{});
    case Rule::rmsprop:
      return f(RmsProp{});
    case Rule::adagrad:
      return f(Adagrad{});
    case Rule::signum:
      return f(Signum{});
    case Rule::lars:
      return f(Lars{});
    case Rule::lamb:
      return f(Lamb{});
    case Rule::muon:
      return f(Muon{});
  }
  __builtin_unreachable();
}

}  // namespace convoy
