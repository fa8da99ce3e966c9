// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/label_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <vector>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "preprocess/transport/location.hpp"

namespace convoy::preparation {
namespace {

using Words = std::vector<std::string>;
constexpr std::array image_extensions{".jpg", ".jpeg", ".jpe",  ".jfif", ".png", ".webp", ".bmp", ".gif",
                                      ".tif", ".tiff", ".avif", ".heic", ".jp2", ".ppm",  ".pgm", ".tga"};
/// What headers call the column of paths, and that of labels.
constexpr std::array path_titles{"id",       "imageid", "image",     "img",           "imagename", "imgname",
                                 "filename", "file",    "path",      "filepath",      "imagepath", "imgpath",
                                 "name",     "fname",   "imagefile", "imagefilename", "key"};
constexpr std::array label_titles{"label",    "class",      "classid", "classname",
                                  "category", "categoryid", "target",  "predictionstring",
                                  "breed",    "species",    "labelid", "labelname"};

Words split_words(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Cuts a line of a table into trimmed fields. Quotes may hold the separator, and two of them mean one.
Words split_fields(const std::string& line, char separator) {
  Words fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && (quoted || trimmed(fields.back()).empty())) {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += line[++i];
      } else {
        quoted = !quoted;
      }
    } else if (c == separator && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) fail(Exit::data, "a quote does not end; close it, or leave quotes out");
  for (auto& field : fields) field = trimmed(field);
  return fields;
}

bool is_number(const std::string& text) {
  double value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size() &&
         !text.empty() && text.find_first_of("0123456789") != std::string::npos;
}

bool names_image(const std::string& text) { return without_extension(text) != text; }

/// Whether a line may be the class of an image and nothing else.
bool may_be_class_name(const std::string& line) {
  const std::string folded = lower(line);
  return line.find_first_of(" \t,;|=:\"'{}[]") == std::string::npos &&
         std::none_of(image_extensions.begin(), image_extensions.end(),
                      [&](const char* extension) { return folded.find(extension) != std::string::npos; });
}

bool all_numbers(const Words& words, std::size_t begin, std::size_t end) {
  return std::all_of(words.begin() + static_cast<std::ptrdiff_t>(begin),
                     words.begin() + static_cast<std::ptrdiff_t>(end), is_number);
}

/// `image_id` and `Image ID` are `imageid`.
std::string plain_title(const std::string& text) {
  std::string title;
  for (const char c : lower(text)) {
    if (c != '_' && c != ' ' && c != '-') title += c;
  }
  return title;
}

template <class Titles>
std::size_t find_title(const Words& fields, const Titles& titles) {
  std::size_t at = 0;
  while (at < fields.size() && std::find(titles.begin(), titles.end(), plain_title(fields[at])) == titles.end()) ++at;
  return at;
}

ClassText require_label(const std::string& word, bool number_only) {
  if (word.empty()) fail(Exit::data, "the label is missing; correct the line");
  const auto label = parse_label(word);
  if (!label || (number_only && class_number(*label) < 0)) {
    fail(Exit::data, "the label '{}' is no class number (a whole number from 0); correct the line", word);
  }
  return *label;
}

/// Where the path ends in `path label`: after the last word that names an image, else before the last word. Throws
/// Error(data) where neither tells.
std::size_t words_of_path(const Words& words) {
  for (std::size_t n = words.size() - 1; n > 0; --n) {
    if (names_image(words[n - 1])) return n;
  }
  if (names_image(words.back())) fail(Exit::data, "the path stands last; give lines of path and label, in this order");
  if (words.size() > 2) {
    fail(Exit::data, "which words are the path and which the label is not clear; put a tab between the two");
  }
  return 1;
}

std::string join(const Words& words, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += (i > begin ? " " : "") + words[i];
  return text;
}

class Reader {
 public:
  Reader(Index column, const std::function<void(LabelRow)>& take)
      : column_(static_cast<std::size_t>(column)), take_(take) {}

  /// Decides how lines are read, from all of them.
  void look_at(const std::vector<std::string>& lines) {
    const auto all = [&](const auto& body) { return std::all_of(lines.begin(), lines.end(), body); };
    const bool script = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("mv ") || line.starts_with("mkdir ") || line.starts_with("#!");
    });
    for (const char separator : {'\t', ',', ';', '|'}) {
      if (script || separator_ != 0 || lines.empty()) break;
      if (is_header(lines.front(), separator) ||
          all([&](const std::string& line) { return may_be_table(line, separator); })) {
        separator_ = separator;
      }
    }
    if (script) {
      kind_ = Kind::script;
    } else if (separator_ != 0) {
      kind_ = Kind::table;
    } else if (all(may_be_class_name)) {
      kind_ = Kind::names;
      if (lines.size() > 1 && !is_number(lines.front()) &&
          std::set(lines.begin(), lines.end()).size() == lines.size()) {
        fail(
            Exit::data,
            "each line is another name, so they are classes (give them as --classes) or images, and no labels; give lines of path and label");
      }
    }
  }

  void read(const std::string& line, std::uint32_t number) {
    line_ = number;
    switch (kind_) {
      case Kind::script:
        return read_command(split_words(line));
      case Kind::table:
        return read_table(split_fields(line, separator_));
      case Kind::names:
        return read_name(line);
      case Kind::words:
        return read_words(line);
    }
  }

 private:
  enum class Kind : std::uint8_t { words, table, script, names };

  static bool is_header(const std::string& line, char separator) {
    const Words fields = split_fields(line, separator);
    return find_title(fields, path_titles) < fields.size() && find_title(fields, label_titles) < fields.size();
  }

  /// A separator may also stand in a path or in a class's name of `path label`.
  static bool may_be_table(const std::string& line, char separator) {
    if (line.find(separator) == std::string::npos) return false;
    const Words fields = split_fields(line, separator);
    if (fields.size() < 2) return false;
    if (separator == '\t') return true;
    const Words path = split_words(fields[0]), label = split_words(fields[1]);
    const bool path_ends_before =
        path.size() > 1 && !names_image(path.back()) && std::any_of(path.begin(), path.end(), names_image);
    const bool path_ends_after = fields.size() == 2 && label.size() > 1 && names_image(label.front());
    return !path_ends_before && !path_ends_after;
  }

  void add(std::string path, ClassText label) {
    if (path.empty()) fail(Exit::data, "the path is missing; correct the line");
    if (path.find('/') == std::string::npos) std::replace(path.begin(), path.end(), '\\', '/');
    take_({std::move(path), std::move(label), line_});
  }

  const std::string& pick(const Words& words, std::size_t begin, std::size_t end) const {
    if (begin + column_ >= end) fail(Exit::data, "it has no label {}", column_);
    return words[begin + column_];
  }

  /// Reads number, labels, path. False: the line is none of a `.lst`.
  bool read_lst(const Words& words) {
    const std::size_t last = words.size() - 1;
    if (words.size() < 3 || !is_number(words[0]) || is_number(words[last])) return false;
    if (!names_image(words[last]) && kind_ != Kind::table) return false;
    if (!all_numbers(words, 1, last) && !names_image(words[last])) return false;
    add(words[last], require_label(pick(words, 1, last), true));
    return true;
  }

  void read_table(const Words& fields) {
    if (columns_ == 0) {
      columns_ = fields.size();
      path_ = find_title(fields, path_titles);
      label_ = find_title(fields, label_titles);
      const bool two = columns_ == 2 && path_ < 2 && !names_image(fields[1 - path_]) && label_ == 2;
      if (two && path_titles_are_certain(fields[path_])) label_ = 1 - path_;
      has_header_ = path_ < columns_ && label_ < columns_ && path_ != label_;
      if (has_header_) {
        takes_first_word_ = plain_title(fields[label_]) == "predictionstring";
        return;
      }
    }
    if (has_header_) {
      if (fields.size() != columns_) {
        fail(Exit::data, "it has {} fields, the header has {}; correct the line", fields.size(), columns_);
      }
      const auto words = split_words(fields[label_]);
      return add(fields[path_], require_label(takes_first_word_ && !words.empty() ? words[0] : fields[label_], false));
    }
    if (read_lst(fields)) return;
    if (names_image(fields[1]) && !names_image(fields[0])) {
      fail(Exit::data, "the path stands last; give lines of path and label, in this order");
    }
    // Boxes or further labels may follow.
    if (!all_numbers(fields, 2, fields.size())) {
      fail(
          Exit::data,
          "which of its {} fields is the label is not clear; give path and label alone, or a header such as image,label",
          fields.size());
    }
    add(fields[0], require_label(pick(fields, 1, fields.size()), false));
  }

  /// `id` and the like; `name` or `key` alone may as well be a file's.
  static bool path_titles_are_certain(const std::string& title) {
    const std::string plain = plain_title(title);
    return plain != "name" && plain != "key" && plain != "file";
  }

  void read_words(const std::string& line) {
    const Words words = line.front() == '"' ? split_fields(line, ' ') : split_words(line);
    if (words.size() == 1) {
      if (class_number(parse_label(words[0]).value_or("")) >= 0) {
        fail(
            Exit::data,
            "a number alone doesn't say which class it means (the development kit counts otherwise); give lines of path and label, or of class names");
      }
      fail(
          Exit::data,
          "it is neither a path and a label nor, as all lines would be, the name of a class; give lines of path and label");
    }
    if (read_lst(words)) return;
    const std::size_t end = words_of_path(words);
    if (words.size() > end + 1 && all_numbers(words, end + 1, words.size())) {
      return add(join(words, 0, end), require_label(pick(words, end, words.size()), false));
    }
    const std::string label = join(words, end, words.size());
    const auto path_end = line.rfind(words[end - 1], line.size() - label.size()) + words[end - 1].size();
    add(line.front() == '"' ? words[0] : trimmed(line.substr(0, path_end)), require_label(label, false));
  }

  void read_command(Words words) {
    if (words.size() == 3 && words[0] == "mv") {
      while (words[2].ends_with('/')) words[2].pop_back();
      add(words[1], named_class(base_name(words[2])));
    } else if (words[0] != "mkdir" && !words[0].starts_with('#')) {
      fail(Exit::data, "it is neither 'mv FILE CLASS/' nor 'mkdir CLASS'; give lines of path and label");
    }
  }

  void read_name(const std::string& name) {
    if (class_number(require_label(name, false)) >= 0) {
      fail(
          Exit::data,
          "a number alone doesn't say which class it means (the development kit counts otherwise); give lines of path and label, or of class names");
    }
    take_({"", named_class(name), line_});
  }

  std::size_t column_;
  const std::function<void(LabelRow)>& take_;
  Kind kind_ = Kind::words;
  char separator_ = 0;
  std::size_t columns_ = 0, path_ = 0, label_ = 1;
  bool has_header_ = false, takes_first_word_ = false;
  std::uint32_t line_ = 0;
};

}  // namespace

ClassText numbered_class(Index number) { return fmt::format("#{}", number); }

ClassText named_class(const std::string& name) {
  return name.starts_with('#') || name.starts_with('\0') ? std::string(1, '\0') + name : name;
}

Index class_number(const ClassText& text) {
  Index number = -1;
  if (text.starts_with('#')) std::from_chars(text.data() + 1, text.data() + text.size(), number);
  return number;
}

std::string class_name(const ClassText& text) { return text.starts_with('\0') ? text.substr(1) : text; }

std::optional<ClassText> parse_label(const std::string& text) {
  constexpr double most = 1e9;
  if (text.empty()) return std::nullopt;
  double value = -1;
  const auto [end, reason] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = reason != std::errc::invalid_argument && end == text.data() + text.size();
  const bool counts = number && reason == std::errc() && value >= 0 && value < most && value == std::floor(value);
  if (counts) return numbered_class(static_cast<Index>(value));
  if (number && (reason != std::errc() || std::isfinite(value))) return std::nullopt;
  return named_class(text);  // `nan` may be one: of a bread
}

std::string without_extension(const std::string& name) {
  const std::string folded = lower(name);
  for (const std::string_view extension : image_extensions) {
    if (folded.ends_with(extension) && folded.size() > extension.size()) {
      return name.substr(0, name.size() - extension.size());
    }
  }
  return name;
}

void read_label_rows(const std::string& text, const std::string& what, Index column,
                     const std::function<void(LabelRow)>& take) {
  std::vector<std::string> lines;
  std::vector<std::uint32_t> numbers;
  std::istringstream stream(plain_text(text, what, Exit::data));
  std::string line;
  for (std::uint32_t number = 1; std::getline(stream, line); ++number) {
    if (const auto end = line.find_last_not_of("\r\n \v\f"); end == std::string::npos) continue;
    while (line.ends_with('\r')) line.pop_back();
    if (trimmed(line).empty()) continue;
    lines.push_back(line);
    numbers.push_back(number);
  }
  Reader reader(column, take);
  std::size_t at = 0;
  try {
    reader.look_at(lines);
    for (; at < lines.size(); ++at) reader.read(lines[at], numbers[at]);
  } catch (const Error& e) {
    fail(e.code(), "'{}', line {}: {}", what, at < numbers.size() ? numbers[at] : 1, e.what());
  }
}

}  // namespace convoy::preparation
