// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <memory>
#include <string>

#include "backend/factory.hpp"

namespace convoy {

/// What CONVOY_TEST_DEVICE names, cpu where unset: one test source serves all backends.
inline std::string test_device() {
  const char* const device = std::getenv("CONVOY_TEST_DEVICE");
  return device != nullptr ? device : "cpu";
}

inline std::unique_ptr<Backend> make_test_backend() {
  BackendSpec spec;
  spec.device = test_device();
  std::string chosen;
  return make_backend(spec, chosen);
}

}  // namespace convoy
