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

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& words) {
  const std::string folded = fold(word);
  std::size_t fewest = (word.size() < 6 ? 1 : word.size() < 12 ? 2 : 3) + 1;
  std::string best;
  for (const std::string& candidate : words) {
    const std::string known = fold(candidate);
    const std::size_t edits = count_edits(folded, known);
    if (edits < fewest && edits < std::max(word.size(), candidate.size()) && begin_alike(folded, known)) {
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
  return text;
}

}  // namespace convoy
