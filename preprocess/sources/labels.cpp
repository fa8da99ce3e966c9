// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/labels.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/plain_text.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

std::vector<std::string> split_words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> split_at(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// What a file's labels may be: MXNet's lists have numbers only.
enum class Words : std::uint8_t { numbers, any };

/// `65` and `65.0` to #65; other numbers are an error; anything else is a name. `nan` may be one: of a bread.
ClassText class_of_word(const std::string& word, Words words) {
  constexpr double most = 1e9;
  double value = -1;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool number = reason != std::errc::invalid_argument && end == word.data() + word.size();
  const bool counts = number && reason == std::errc() && value >= 0 && value < most && value == std::floor(value);
  if (counts) return numbered_class(static_cast<Index>(value));
  if (words == Words::numbers || (number && (reason != std::errc() || std::isfinite(value)))) {
    fail(Exit::data, "the label '{}' is no class number (a whole number from 0); mend the line", word);
  }
  return word;
}

std::string without_extension(const std::string& name) {
  const auto dot = name.rfind('.'), slash = name.rfind('/');
  return dot == std::string::npos || (slash != std::string::npos && dot < slash) ? name : name.substr(0, dot);
}

}  // namespace

Index image_number(const std::string& name) {
  const std::string stem = without_extension(base_name(name));
  const auto begin = stem.find_last_not_of("0123456789") + 1;  // npos + 1 = 0
  Index number = -1;
  std::from_chars(stem.data() + begin, stem.data() + stem.size(), number);
  return number;
}

ClassText numbered_class(Index number) { return fmt::format("#{}", number); }

Index class_number(const ClassText& text) {
  Index number = -1;
  if (text.starts_with('#')) std::from_chars(text.data() + 1, text.data() + text.size(), number);
  return number;
}

LabelFile::LabelFile(const std::string& text, const std::string& what, Index column, Paths paths)
    : what_(what), keep_paths_(paths == Paths::keep) {
  std::istringstream lines(plain_text(text, what, Exit::data));
  std::string line;
  for (std::uint32_t number = 1; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with("ImageId,")) csv_ = true;
    if (line.find_first_not_of(" \t") == std::string::npos || line.starts_with("ImageId,")) continue;
    try {
      line_ = number;
      read_line(line, column);
    } catch (const Error& e) {
      fail(e.code(), "'{}', line {}: {}", what, number, e.what());
    }
  }
  if (entries_.empty() && by_number_.empty()) fail(Exit::data, "'{}' has no labels; check the file", what);
  if (!entries_.empty() && !by_number_.empty()) {
    fail(Exit::data, "'{}' mixes lines of a path and a label with lines of one word; check the file", what);
  }
  // A list is read in its order, and images of one name are told by the report.
  if (paths == Paths::forget) require_no_contradiction(what);
  build_index();
}

void LabelFile::add(const std::string& path, const ClassText& text) {
  const Class number = number_of(text);
  const std::string plain = plain_path(path);
  by_file_.push_back({hash_text(plain), number, line_});
  by_path_.push_back({hash_text(without_extension(plain)), number, line_});
  by_name_.push_back({hash_text(without_extension(base_name(plain))), number, line_});
  entries_.push_back(number);
  if (keep_paths_) paths_.push_back(path);
}

LabelFile::Class LabelFile::number_of(const ClassText& text) {
  const auto [found, added] = numbers_.emplace(text, static_cast<Class>(classes_.size()));
  if (added) classes_.push_back(text);
  return found->second;
}

void LabelFile::sort(std::vector<Key>& keys) {
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.hash < b.hash; });
}

void LabelFile::require_no_contradiction(const std::string& what) {
  sort(by_file_);
  for (std::size_t i = 1; i < by_file_.size(); ++i) {
    const Key &first = by_file_[i - 1], &second = by_file_[i];
    if (first.hash != second.hash || first.number == second.number) continue;
    fail(Exit::data, "'{}' gives one image two classes ('{}' in line {}, '{}' in line {}); keep one of the lines", what,
         classes_[first.number], first.line, classes_[second.number], second.line);
  }
}

void LabelFile::build_index() {
  sort(by_file_);
  // What means several classes means none.
  const auto keep_clear = [](std::vector<Key>& keys) {
    sort(keys);
    std::size_t kept = 0;
    bool all_clear = true;
    for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
      bool one = true;
      for (end = begin; end < keys.size() && keys[end].hash == keys[begin].hash; ++end) {
        one = one && keys[end].number == keys[begin].number;
      }
      if (one) keys[kept++] = keys[begin];
      all_clear = all_clear && one;
    }
    keys.resize(kept);
    return all_clear;
  };
  if (keep_clear(by_path_)) by_file_ = {};  // whole paths tell no more
  keep_clear(by_name_);
}

void LabelFile::read_line(const std::string& line, Index column) {
  if (const auto tabs = split_at(line, '\t'); tabs.size() >= 3) {  // MXNet: number, labels, path
    if (column + 2 >= static_cast<Index>(tabs.size())) fail(Exit::data, "it has no label {}", column);
    const auto words = split_words(tabs[static_cast<std::size_t>(1 + column)]);
    add(tabs.back(), class_of_word(words.empty() ? "" : words.front(), Words::numbers));
    return;
  }
  if (const auto comma = line.find(','); csv_ && comma != std::string::npos) {  // Kaggle
    const auto words = split_words(line.substr(comma + 1));
    if (words.empty()) fail(Exit::data, "no class after the comma");
    add(line.substr(0, comma), class_of_word(words.front(), Words::any));
    return;
  }
  auto words = split_words(line);
  if (words.empty()) return;  // white space of rarer kinds
  if (words.size() == 3 && words[0] == "mv") {
    while (words[2].ends_with('/')) words[2].pop_back();
    add(words[1], base_name(words[2]));
  } else if (words[0] == "mkdir" || words[0].starts_with("#!")) {
    return;  // the rest of that script
  } else if (words.size() >= 2) {
    // A path may hold spaces; a label doesn't.
    const std::string label = words.back();
    const auto end = line.find_last_not_of(" \t", line.rfind(label) - 1);
    add(line.substr(0, end + 1), class_of_word(label, Words::any));
  } else if (class_number(class_of_word(words[0], Words::any)) >= 0) {
    fail(Exit::data,
         "a number alone doesn't say which class it means (the development kit counts otherwise); give lines of path "
         "and label, or of class names");
  } else {
    by_number_.push_back(words[0]);
  }
}

std::optional<ClassText> LabelFile::find(const std::string& name) const {
  const auto look = [&](const std::vector<Key>& keys, const std::string& key) -> const ClassText* {
    const std::uint64_t hash = hash_text(key);
    const auto at = std::lower_bound(keys.begin(), keys.end(), hash,
                                     [](const Key& entry, std::uint64_t wanted) { return entry.hash < wanted; });
    return at != keys.end() && at->hash == hash ? &classes_[at->number] : nullptr;
  };
  if (const ClassText* text = look(by_file_, name)) return *text;
  if (const ClassText* text = look(by_path_, without_extension(name))) return *text;
  if (const ClassText* text = look(by_name_, without_extension(base_name(name)))) return *text;
  if (by_number_.empty()) return std::nullopt;
  const Index number = image_number(name);
  if (number < 1 || number > numbered_lines()) {
    fail(Exit::data,
         "'{}' has no line among the {} labels of '{}' (they are given without paths, so the number that ends an "
         "image's name is its line); give lines of path and label",
         name, numbered_lines(), what_);
  }
  return by_number_[static_cast<std::size_t>(number - 1)];
}

Index ClassList::number_of(const ClassText& text) const {
  if (const Index number = class_number(text); number >= 0) {
    return number < static_cast<Index>(names.size()) ? number : -1;
  }
  const auto found = numbers.find(text);
  return found == numbers.end() ? -1 : found->second;
}

ClassList parse_class_list(const std::string& text, const std::string& what) {
  ClassList list;
  list.closed = true;
  std::istringstream lines(plain_text(text, what, Exit::data));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    const auto words = split_words(line);
    if (words.empty()) continue;
    if (!list.numbers.emplace(words.front(), static_cast<Index>(list.names.size())).second) {
      fail(Exit::data, "'{}' lists the class '{}' twice; check the file", what, words.front());
    }
    list.names.push_back(line);
  }
  if (list.names.empty()) fail(Exit::data, "'{}' lists no classes; check the file", what);
  return list;
}

ClassList classes_from(const std::vector<ClassText>& seen) {
  ClassList list;
  Index largest = -1;
  for (const ClassText& text : seen) {
    largest = std::max(largest, class_number(text));
    if (class_number(text) < 0) list.names.push_back(text);
  }
  std::sort(list.names.begin(), list.names.end());
  list.names.erase(std::unique(list.names.begin(), list.names.end()), list.names.end());
  constexpr Index most_classes = Index{1} << 24;
  if (largest >= most_classes) fail(Exit::data, "label {} is no class number; check the labels", largest);
  if (list.names.empty()) {
    for (Index i = 0; i <= largest; ++i) list.names.push_back(fmt::format("class-{}", i));
  }
  for (std::size_t i = 0; i < list.names.size(); ++i) list.numbers.emplace(list.names[i], static_cast<Index>(i));
  return list;
}

}  // namespace convoy::preparation
