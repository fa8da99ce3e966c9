// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/types.hpp"

namespace convoy::preparation {

/// A class as a source names it, before classes are numbered: a name (`n01440764`), or `#65` where the source gives the
/// number itself. A name that begins with `#` has a null byte before it.
using ClassText = std::string;
ClassText numbered_class(Index number);
ClassText named_class(const std::string& name);
/// Returns the number of `#65`; -1 for a name.
Index class_number(const ClassText& text);
/// Returns the name that named_class() was given.
std::string class_name(const ClassText& text);
/// Reads a label: `65` and `65.0` are numbers, anything else is a name. Nothing for a number that is no class number
/// (`-1`, `0.5`) and for an empty text.
std::optional<ClassText> parse_label(const std::string& text);

/// Removes the extension of an image file; another dot belongs to the name.
std::string without_extension(const std::string& name);

/// One line of a label file. Without a path it is the class of the image whose number is that of the line among them.
struct LabelRow {
  std::string path;
  ClassText label;
  std::uint32_t line = 0;
};

/// Reads a label file line after line. All its lines are of one kind, which is told by their looks:
/// - a table with commas, semicolons or tabs, quotes where need be, with or without a header. Two columns are path and
///   label; of more the header tells which, or the first is the path, and numbers alone follow the label
/// - MXNet's `.lst`: number, labels, path
/// - path, blanks, label
/// - the `mv FILE CLASS/` lines of a script
/// - one class name a line
/// `column`: which of several labels. Throws Error(data) that names the line and what to do: a label is never guessed.
void read_label_rows(const std::string& text, const std::string& what, Index column,
                     const std::function<void(LabelRow)>& take);

}  // namespace convoy::preparation
