// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace convoy {

/// clang's coverage counters of the whole program; empty in a build without.
std::span<std::uint8_t> coverage_counters();

/// Inputs that a target could make something of: with none of them nothing behind the first look was tried.
std::int64_t& inputs_read();

}  // namespace convoy
