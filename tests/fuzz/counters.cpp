// SPDX-License-Identifier: Apache-2.0
// Compiled without coverage: in an instrumented file the compiler declares these symbols itself, takes ours for others,
// and nothing is counted.
#include "tests/fuzz/counters.hpp"

extern "C" {
__attribute__((weak)) extern std::uint8_t __start___sancov_cntrs[];  // NOLINT: the linker's names
__attribute__((weak)) extern std::uint8_t __stop___sancov_cntrs[];   // NOLINT
}

namespace convoy {

std::span<std::uint8_t> coverage_counters() { return {__start___sancov_cntrs, __stop___sancov_cntrs}; }

std::int64_t& inputs_read() {
  static std::int64_t count = 0;
  return count;
}

}  // namespace convoy
