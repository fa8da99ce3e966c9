// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "backend/factory.hpp"
#include "core/errors.hpp"

namespace convoy {

/// What CONVOY_TEST_DEVICE names, cpu where unset: one test source serves all backends.
inline std::string test_device() {
  const char* const device = std::getenv("CONVOY_TEST_DEVICE");
  return device != nullptr ? device : "cpu";
}

/// Without a GPU a test of one is skipped (77), unless CONVOY_REQUIRE_GPU=1.
inline std::unique_ptr<Backend> make_test_backend() {
  BackendSpec spec;
  spec.device = test_device();
  std::string chosen;
  try {
    return make_backend(spec, chosen);
  } catch (const Error& e) {
    const char* const required = std::getenv("CONVOY_REQUIRE_GPU");
    if (spec.device != "cuda" || e.code() != Exit::device || (required != nullptr && std::string(required) == "1"))
      throw;
    std::fprintf(stderr, "skipped: %s\n", e.what());
    std::exit(77);
  }
}

}  // namespace convoy
