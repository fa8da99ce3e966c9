// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "config/parse.hpp"
#include "core/errors.hpp"

namespace convoy {

/// Words as a shell splits them, without quoting.
inline std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  return list;
}

/// `convoy train --synthetic LINE`, with this text as the file that --config names.
inline TrainConfig train_config(const std::string& line, const std::string& file = "") {
  auto list = words(line);
  list.insert(list.begin(), "--synthetic");
  return parse_train(list, [&](const std::string&) { return file; });
}

/// The text of the usage error that `body` throws; empty where it throws none.
template <class Body>
std::string usage_error(const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage);
    return e.what();
  }
  return "";
}

inline std::string train_error(const std::string& line, const std::string& file = "") {
  return usage_error([&] { train_config(line, file); });
}

}  // namespace convoy
