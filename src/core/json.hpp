// SPDX-License-Identifier: Apache-2.0
// JSON as a value. The library behind it is included by json.cpp alone: its header takes seconds to compile.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace convoy {

class Json {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, natural, real, text, list, object };
  /// as_written: members in the order in which they were added.
  enum class Order : bool { as_written, sorted };
  using Member = std::pair<const char*, Json>;

  Json() = default;  ///< null
  Json(bool value) : kind_(Kind::boolean), integer_(value) {}
  template <std::integral T>
  Json(T value)
      : kind_(std::is_signed_v<T> ? Kind::integer : Kind::natural), integer_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Json(T value) : kind_(Kind::real), real_(static_cast<double>(value)) {}
  Json(const char* value) : kind_(Kind::text), text_(value) {}
  Json(std::string value) : kind_(Kind::text), text_(std::move(value)) {}
  template <class T>
  Json(const std::vector<T>& values) : kind_(Kind::list), items_(values.begin(), values.end()) {}
  template <class T>
  Json(const std::map<std::string, T>& values) : kind_(Kind::object) {
    for (const auto& [name, value] : values) (*this)[name] = value;
  }
  static Json list() { return Json(std::vector<Json>()); }
  static Json object(std::initializer_list<Member> members = {});

  /// once: an object may not have two members of one name; else the last counts.
  enum class Names : bool { any, once };
  /// Throws std::invalid_argument.
  static Json parse(const std::string& text, Names names = Names::any);
  /// Null for a text that is no JSON.
  static Json parse_or_null(const std::string& text);
  /// On one line for indent < 0. A number that is not finite becomes null, a byte that is not UTF-8 the replacement
  /// character.
  std::string text(int indent, Order order) const;

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_object() const { return kind_ == Kind::object; }
  bool is_list() const { return kind_ == Kind::list; }
  bool is_text() const { return kind_ == Kind::text; }
  bool is_integer() const { return kind_ == Kind::integer || kind_ == Kind::natural; }
  bool is_number() const { return is_integer() || kind_ == Kind::real; }

  /// Of an object. Null: there is none.
  const Json* find(const std::string& name) const;
  /// Throws std::invalid_argument if there is none, or if this is no object.
  const Json& at(const std::string& name) const;
  /// The member, added where there is none. This must be an object or null, which becomes one.
  Json& operator[](const std::string& name);
  /// Sets several members.
  void set(std::initializer_list<Member> members);
  /// This must be a list or null, which becomes one.
  void add(Json item);
  /// Of a list or an object; names() has those of an object in the same order.
  const std::vector<Json>& items() const { return items_; }
  const std::vector<std::string>& names() const { return names_; }

  /// bool, a number, std::string, or a vector or map (by name) of them. Throws std::invalid_argument for another kind
  /// and for a number that T can't hold.
  template <class T>
  T as() const;
  /// The member of an object as `T`; `otherwise` if there is none.
  template <class T>
  T value(const std::string& name, T otherwise) const {
    const Json* found = find(name);
    return found == nullptr ? otherwise : found->as<T>();
  }
  std::string value(const std::string& name, const char* otherwise) const {
    return value(name, std::string(otherwise));
  }

 private:
  void require_kind(bool holds, const char* wanted) const;
  std::int64_t whole() const;
  double number() const;

  Kind kind_ = Kind::null;
  std::int64_t integer_ = 0;  ///< boolean, integer, and the bits of natural
  double real_ = 0;
  std::string text_;
  std::vector<std::string> names_;
  std::vector<Json> items_;
};

inline bool operator==(const Json& json, const char* text) { return json.is_text() && json.as<std::string>() == text; }

template <class T>
T Json::as() const {
  if constexpr (std::is_same_v<T, bool>) {
    require_kind(kind_ == Kind::boolean, "true or false");
    return integer_ != 0;
  } else if constexpr (std::is_same_v<T, std::string>) {
    require_kind(is_text(), "a text");
    return text_;
  } else if constexpr (std::is_integral_v<T>) {
    const std::int64_t value = whole();
    const bool fits =
        kind_ == Kind::natural ? std::in_range<T>(static_cast<std::uint64_t>(value)) : std::in_range<T>(value);
    require_kind(fits, "a number of this size");
    return static_cast<T>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number());
  } else {
    T values;
    if constexpr (requires { typename T::mapped_type; }) {
      require_kind(is_object(), "an object");
      for (std::size_t i = 0; i < items_.size(); ++i) values[names_[i]] = items_[i].as<typename T::mapped_type>();
    } else {
      require_kind(is_list(), "a list");
      for (const Json& item : items_) values.push_back(item.as<typename T::value_type>());
    }
    return values;
  }
}

}  // namespace convoy
