// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <memory>
#include <string>

#include "backend/factory.hpp"

namespace convoy {

/// The backend that CONVOY_TEST_DEVICE names (cpu where unset): one test source serves them all.
inline std::unique_ptr<Backend> make_test_backend() {
  const char* const device = std::getenv("CONVOY_TEST_DEVICE");
  BackendSpec spec;
  spec.device = device != nullptr ? device : "cpu";
  std::string chosen;
  return make_backend(spec, chosen);
}

}  // namespace convoy
