// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/errors.hpp"

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

/// For people, and for a line of a table: control characters, which would break it or steer a terminal, as their
/// pictures (a line end as U+240A). Other bytes stay.
std::string one_line(const std::string& text);

/// The text with U+FFFD for each byte that is no part of a character in UTF-8.
std::string valid_utf8(const std::string& text);

/// For a page of HTML: on one line, valid, without the characters that HTML means otherwise.
std::string html_text(const std::string& text);

/// RFC 4648, with padding.
std::string base64(std::span<const std::uint8_t> bytes);

/// A word of a shell's command, in quotes if it needs them.
std::string shell_word(const std::string& text);

/// The entry of `words` that a user who typed `word` most likely meant: fewest edits (insert, delete, replace, swap of
/// neighbours), case and - against _ not counted; the first of equals. Empty if none is a typing error away: one edit
/// below 6 letters, two below 12, else three, also of each part between hyphens, and the first letter is no other one.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

/// A text file's content as its reader wants it: without the byte order mark of UTF-8 that some editors put before it.
/// Throws Error(code) naming `what` for UTF-16 and UTF-32.
std::string plain_text(std::string text, const std::string& what, Exit code);

/// `1 step`, `2 steps`, `2 classes`: of nouns that take an s, or es behind one.
template <class N>
requires std::is_arithmetic_v<N> std::string counted(N number, std::string_view noun) {
  const char* ending = number == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  if constexpr (std::floating_point<N>) return fmt::format("{:.4g} {}{}", number, noun, ending);
  return fmt::format("{} {}{}", number, noun, ending);
}

/// `every step`, `every 4 steps`.
template <std::integral N>
std::string every(N number, std::string_view noun) {
  return number == 1 ? fmt::format("every {}", noun) : fmt::format("every {}", counted(number, noun));
}

}  // namespace convoy
