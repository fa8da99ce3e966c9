// SPDX-License-Identifier: Apache-2.0
// Values one after another in a text: messages between ranks, tables of intermediate files. A value is a text, a
// number, an enumerator, a vector of values, or a struct whose fields() gives its members to a visitor. Names of files
// are any bytes, so nothing is escaped: each text has its length before it.
#pragma once
#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace convoy::preparation {

template <class T>
constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;
template <class T>
constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

class FieldWriter {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view text = value;
      text_ += std::to_string(text.size());
      text_ += ':';
      text_.append(text);
    } else if constexpr (is_number<T>) {
      put(std::to_string(static_cast<Index>(value)));
    } else if constexpr (is_vector<T>) {
      put(value.size());
      for (const auto& each : value) put(each);
    } else {
      const_cast<T&>(value).fields(
          [this](const auto&... members) { (this->put(members), ...); });  // which only reads them
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Throws Error(data) where fields end early.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      value = next();
    } else if constexpr (is_number<T>) {
      const std::string_view field = next();
      Index number = 0;
      std::from_chars(field.data(), field.data() + field.size(), number);
      value = static_cast<T>(number);
    } else if constexpr (is_vector<T>) {
      std::size_t count = 0;
      get(count);
      if (count > rest_.size()) fail_damaged();  // each takes two bytes or more
      value.resize(count);
      for (auto& each : value) get(each);
    } else {
      value.fields([this](auto&... members) { (this->get(members), ...); });
    }
  }

 private:
  std::string_view next() {
    const auto colon = rest_.find(':');
    std::size_t bytes = 0;
    if (colon != std::string_view::npos) std::from_chars(rest_.data(), rest_.data() + colon, bytes);
    if (colon == std::string_view::npos || bytes > rest_.size() - colon - 1) fail_damaged();
    const std::string_view field = rest_.substr(colon + 1, bytes);
    rest_.remove_prefix(colon + 1 + bytes);
    return field;
  }
  [[noreturn]] void fail_damaged() const {
    fail(Exit::data, "a table of names is damaged ({} bytes left)", rest_.size());
  }

  std::string_view rest_;
};

template <class... Ts>
std::string to_text(const Ts&... values) {
  FieldWriter writer;
  (writer.put(values), ...);
  return writer.text();
}

template <class... Ts>
void from_text(std::string_view text, Ts&... values) {
  FieldReader reader(text);
  (reader.get(values), ...);
}

}  // namespace convoy::preparation
