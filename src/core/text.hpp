// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

/// Removes white space at both ends, and a byte order mark.
inline std::string trimmed(const std::string& text) {
  constexpr const char* white_space = " \t\r\n\v\f";
  const auto begin = text.find_first_not_of(white_space, text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(white_space) - begin + 1);
}

/// Quotes a field of a table with commas where it needs it (RFC 4180).
inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace convoy
