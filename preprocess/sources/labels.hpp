// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/types.hpp"
#include "preprocess/sources/label_table.hpp"

namespace convoy::preparation {

/// Returns the digits at the end of a name without extension: ILSVRC2012_val_00000293.JPEG has 293. -1: none.
Index image_number(const std::string& name);

/// The labels of a file (read_label_rows()), found by images' names.
class LabelFile {
 public:
  /// Whether paths are needed, or only looked for.
  enum class Paths : std::uint8_t { forget, keep };
  /// `column`: of several labels. Throws Error(data) naming line and reason; with Paths::forget also where one path
  /// has two classes.
  LabelFile(const std::string& text, const std::string& what, Index column = 0, Paths paths = Paths::forget);
  /// Looks by path, then without extension, then by file name without extension (where these mean one class only). In a
  /// file without paths by number: throws Error(data) where there is no such line.
  std::optional<ClassText> find(const std::string& name) const;
  /// Paths::keep: in the file's order.
  const std::vector<std::string>& paths() const { return paths_; }
  const ClassText& class_of(std::size_t entry) const { return classes_[entries_[entry]]; }
  /// Returns the lines of a file without paths; else 0.
  Index numbered_lines() const { return static_cast<Index>(by_number_.size()); }

 private:
  using Class = std::uint32_t;
  struct Key {
    std::uint64_t hash = 0;
    Class number = 0;
    std::uint32_t line = 0;
  };
  void add(LabelRow& row);
  Class number_of(const ClassText& text);
  static void sort(std::vector<Key>& keys);
  void require_no_contradiction(const std::string& what);
  void build_index();
  std::string what_;
  std::vector<ClassText> classes_;
  std::unordered_map<ClassText, Class> numbers_;
  std::vector<Class> entries_;
  std::vector<std::string> paths_;
  std::vector<Key> by_file_, by_path_, by_name_;  ///< sorted by hash
  std::vector<ClassText> by_number_;
  bool keep_paths_ = false;
};

/// Classes and their numbers.
struct ClassList {
  std::vector<std::string> names;                  ///< by number
  std::unordered_map<std::string, Index> numbers;  ///< by name (its first word, where a list gave more)
  std::unordered_map<Index, Index> numeric;  ///< by the value of names that are whole numbers; -1: several classes
  bool closed = false;                       ///< given by the user: other classes are left out
  void add(const std::string& key, const std::string& name);
  /// Returns -1 for no class of this list. A number means the class of that name where classes have numbers as names,
  /// else the place in the list.
  Index number_of(const ClassText& text) const;
};

/// Reads a file with a class a line, in order: the first word is the key; the whole line is the name.
ClassList parse_class_list(const std::string& text, const std::string& what);
/// Sorted names; or as many classes as the largest number needs. Throws Error(data) where a number means none of the
/// names.
ClassList classes_from(const std::vector<ClassText>& seen);

}  // namespace convoy::preparation
