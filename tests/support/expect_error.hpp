// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.hpp"

namespace convoy {

/// `body` must throw Error(code) whose text has all `parts`.
template <class Body>
void expect_error(Exit code, const std::vector<std::string>& parts, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    for (const auto& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "'" << part << "' is not in: " << error.what();
    }
    return;
  }
  ADD_FAILURE() << "no error, expected one with '" << (parts.empty() ? "" : parts.front()) << "'";
}

}  // namespace convoy
