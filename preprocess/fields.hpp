// SPDX-License-Identifier: Apache-2.0
// Texts and numbers one after another in a text: messages between ranks, tables of intermediate files. Names of files
// are any bytes, so nothing is escaped: each field has its length before it.
#pragma once
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace convoy::preparation {

class FieldWriter {
 public:
  FieldWriter& put(std::string_view text) {
    text_ += std::to_string(text.size());
    text_ += ':';
    text_.append(text);
    return *this;
  }
  FieldWriter& put(Index number) { return put(std::string_view(std::to_string(number))); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Throws Error(data) where fields end early.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  std::string text() {
    const auto colon = rest_.find(':');
    std::size_t bytes = 0;
    if (colon != std::string_view::npos) std::from_chars(rest_.data(), rest_.data() + colon, bytes);
    if (colon == std::string_view::npos || bytes > rest_.size() - colon - 1) {
      fail(Exit::data, "a table of names is damaged ({} bytes left)", rest_.size());
    }
    std::string field(rest_.substr(colon + 1, bytes));
    rest_.remove_prefix(colon + 1 + bytes);
    return field;
  }
  Index number() {
    const std::string field = text();
    Index value = 0;
    std::from_chars(field.data(), field.data() + field.size(), value);
    return value;
  }

 private:
  std::string_view rest_;
};

inline std::string fields_of(const std::vector<std::string>& texts) {
  FieldWriter fields;
  for (const auto& text : texts) fields.put(text);
  return fields.text();
}

inline std::vector<std::string> texts_of(std::string_view text) {
  std::vector<std::string> texts;
  for (FieldReader fields(text); !fields.done();) texts.push_back(fields.text());
  return texts;
}

}  // namespace convoy::preparation
