// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/labels.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {

Index image_number(const std::string& name) {
  const std::string stem = without_extension(base_name(name));
  const auto begin = stem.find_last_not_of("0123456789") + 1;  // npos + 1 = 0
  Index number = -1;
  std::from_chars(stem.data() + begin, stem.data() + stem.size(), number);
  return number;
}

LabelFile::LabelFile(const std::string& text, const std::string& what, Index column, Paths paths)
    : what_(what), keep_paths_(paths == Paths::keep) {
  read_label_rows(text, what, column, [&](LabelRow row) {
    if (row.path.empty()) {
      by_number_.push_back(std::move(row.label));
    } else {
      add(row);
    }
  });
  if (entries_.empty() && by_number_.empty()) fail(Exit::data, "'{}' has no labels; check the file", what);
  // A list is read in its order, and images of one name are told by the report.
  if (paths == Paths::forget) require_no_contradiction(what);
  build_index();
}

void LabelFile::add(LabelRow& row) {
  const Class number = number_of(row.label);
  const std::string plain = plain_path(row.path);
  by_file_.push_back({hash_text(plain), number, row.line});
  by_path_.push_back({hash_text(without_extension(plain)), number, row.line});
  by_name_.push_back({hash_text(without_extension(base_name(plain))), number, row.line});
  entries_.push_back(number);
  if (keep_paths_) paths_.push_back(std::move(row.path));
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
    fail(
        Exit::data,
        "'{}' has no line among the {} labels of '{}' (they are given without paths, so the number that ends an image's name is its line); give lines of path and label",
        name, numbered_lines(), what_);
  }
  return by_number_[static_cast<std::size_t>(number - 1)];
}

namespace {

/// -1: the name is no whole number.
Index value_of(const std::string& name) {
  Index value = -1;
  const auto [end, reason] = std::from_chars(name.data(), name.data() + name.size(), value);
  return reason == std::errc() && end == name.data() + name.size() && value >= 0 ? value : -1;
}

}  // namespace

void ClassList::add(const std::string& key, const std::string& name) {
  const auto number = static_cast<Index>(names.size());
  if (!numbers.emplace(key, number).second) return;
  names.push_back(name);
  if (const Index value = value_of(key); value >= 0) {
    const auto [found, added] = numeric.emplace(value, number);
    if (!added) found->second = -1;  // `3` and `03`: neither is meant
  }
}

Index ClassList::number_of(const ClassText& text) const {
  const Index number = class_number(text);
  if (number < 0) {
    const auto found = numbers.find(class_name(text));
    return found == numbers.end() ? -1 : found->second;
  }
  if (numeric.empty()) return number < static_cast<Index>(names.size()) ? number : -1;
  // Classes have numbers as names: the number is a name.
  const auto found = numeric.find(number);
  return found == numeric.end() ? -1 : found->second;
}

ClassList parse_class_list(const std::string& text, const std::string& what) {
  ClassList list;
  list.closed = true;
  std::istringstream lines(plain_text(text, what, Exit::data));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    std::string word;
    if (!(std::istringstream(line) >> word)) continue;
    if (list.numbers.contains(word)) fail(Exit::data, "'{}' lists the class '{}' twice; check the file", what, word);
    list.add(word, line);
  }
  if (list.names.empty()) fail(Exit::data, "'{}' lists no classes; check the file", what);
  return list;
}

ClassList classes_from(const std::vector<ClassText>& seen) {
  ClassList list;
  std::set<std::string> names;
  std::set<Index> values;  // of names that are whole numbers
  Index largest = -1;
  for (const ClassText& text : seen) {
    largest = std::max(largest, class_number(text));
    if (class_number(text) >= 0) continue;
    names.insert(class_name(text));
    if (const Index value = value_of(class_name(text)); value >= 0) values.insert(value);
  }
  for (const ClassText& text : seen) {
    const Index number = class_number(text);
    if (number >= 0 && !values.empty() && !values.contains(number)) names.insert(std::to_string(number));
  }
  constexpr Index most_classes = Index{1} << 24;
  if (largest >= most_classes) fail(Exit::data, "label {} is no class number; check the labels", largest);
  for (const auto& name : names) list.add(name, name);
  if (list.names.empty()) {
    for (Index i = 0; i <= largest; ++i) list.add(fmt::format("class-{}", i), fmt::format("class-{}", i));
  }
  for (const ClassText& text : seen) {
    if (list.number_of(text) >= 0) continue;
    fail(Exit::data,
         "label {} means none of the {} classes ('{}' is number 0); give labels by name, or numbers that begin with 0",
         class_number(text), list.names.size(), list.names.front());
  }
  return list;
}

}  // namespace convoy::preparation
