// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.hpp"

namespace convoy {

/// `call` must throw Error(usage) whose text has all of `parts`.
template <class Call>
void expect_usage_error(Call&& call, const std::vector<std::string>& parts) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << "'" << part << "' not in: " << error.what();
    return;
  }
  ADD_FAILURE() << "no error; expected one with '" << (parts.empty() ? "" : parts[0]) << "'";
}

}  // namespace convoy
