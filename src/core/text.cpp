// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <algorithm>
#include <cctype>

namespace convoy {
namespace {

std::string fold(std::string text) {
  for (char& c : text) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Optimal string alignment distance (Damerau-Levenshtein without edits inside a swap), three rows at a time.
std::size_t count_edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// Who errs seldom replaces the first letter: it is there, doubled, left out or swapped with the second.
bool begin_alike(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  return a[0] == b[0] || (b.size() > 1 && a[0] == b[1]) || (a.size() > 1 && a[1] == b[0]);
}

/// Edits that are a typing error in a word of that many letters.
std::size_t most_edits(std::size_t letters) { return letters < 6 ? 1 : letters < 12 ? 2 : 3; }

std::vector<std::string> parts_of(const std::string& folded) {
  std::vector<std::string> parts(1);
  for (const char c : folded) {
    if (c == '-') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// Names of as many parts differ by typing errors if each part does: `min-np` is no `min-lr`.
bool parts_are_alike(const std::string& a, const std::string& b) {
  const std::vector<std::string> of_a = parts_of(a), of_b = parts_of(b);
  return of_a.size() != of_b.size() ||
         std::equal(of_a.begin(), of_a.end(), of_b.begin(),
                    [](const auto& x, const auto& y) { return count_edits(x, y) <= most_edits(x.size()); });
}

/// Bytes of the character in UTF-8 (RFC 3629) at the beginning; 0: none is there.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  // Longer forms than needed, surrogates and what lies above U+10FFFF have no character.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (first < 0xC2 || first > 0xF4 || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < size; ++i)
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  return size;
}

}  // namespace

std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      line += c;
    } else {  // U+2400 + byte, and U+2421 for the last
      line += "\xE2\x90";
      line += static_cast<char>(byte == 0x7F ? 0xA1 : 0x80 + byte);
    }
  }
  return line;
}

std::string valid_utf8(const std::string& text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(std::string_view(text).substr(at));
    valid += size == 0 ? "\xEF\xBF\xBD" : text.substr(at, size);
    at += std::max<std::size_t>(size, 1);
  }
  return valid;
}

std::string shell_word(const std::string& text) {
  if (!text.empty() && text.find_first_of(" \t\n'\"$`\\*?[]{}()<>|&;#~!") == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string nearest(const std::string& word, const std::vector<std::string>& words) {
  const std::string folded = fold(word);
  std::size_t fewest = most_edits(word.size()) + 1;
  std::string best;
  for (const std::string& candidate : words) {
    const std::string known = fold(candidate);
    const std::size_t edits = count_edits(folded, known);
    if (edits < fewest && edits < std::max(word.size(), candidate.size()) && begin_alike(folded, known) &&
        parts_are_alike(folded, known)) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

std::string plain_text(std::string text, const std::string& what, Exit code) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.erase(0, 3);
  } else if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    fail(code, "'{}' is no plain text (it is UTF-16 or UTF-32); save it as UTF-8", what);
  }
  if (text.find('\0') != std::string::npos)
    fail(code, "'{}' is not a text file (it holds bytes that are 0); give the file that was meant", what);
  return text;
}

std::string html_text(const std::string& text) {
  std::string html;
  for (const char c : valid_utf8(one_line(text))) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? bytes[at + i] : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? digits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace convoy
