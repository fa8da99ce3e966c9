// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operation.hpp"

#include <type_traits>
#include <variant>

#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

template <class T, class... Others>
constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

}  // namespace

const Operation& operation_of(const Node& node) {
  return std::visit(
      [&](const auto& attributes) -> const Operation& {
        using T = std::decay_t<decltype(attributes)>;
        if constexpr (is_one_of<T, BatchNorm, Add, Activation, Flatten>)
          fail(Exit::internal, "internal error: node '{}' is a part of a group, not an operation", node.name);
        else
          return operation_for<T>();
      },
      node.attributes);
}

}  // namespace convoy::cpu
