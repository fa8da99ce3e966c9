// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace convoy {
namespace {

using Ordered = nlohmann::ordered_json;

/// Values within values, as deep as this program writes and reads them, many times over: recursion must end.
constexpr int deepest = 100;

Json from(const Ordered& value, int depth = 0) {
  if (depth > deepest) throw std::invalid_argument("lists within lists are too deep");
  switch (value.type()) {
    case nlohmann::detail::value_t::boolean:
      return value.get<bool>();
    case nlohmann::detail::value_t::number_integer:
      return value.get<std::int64_t>();
    case nlohmann::detail::value_t::number_unsigned:
      return value.get<std::uint64_t>();
    case nlohmann::detail::value_t::number_float:
      return value.get<double>();
    case nlohmann::detail::value_t::string:
      return value.get<std::string>();
    case nlohmann::detail::value_t::array: {
      Json list = Json::list();
      for (const Ordered& item : value) list.add(from(item, depth + 1));
      return list;
    }
    case nlohmann::detail::value_t::object: {
      Json object = Json::object();
      for (const auto& [name, member] : value.items()) object[name] = from(member, depth + 1);
      return object;
    }
    case nlohmann::detail::value_t::null:
    case nlohmann::detail::value_t::binary:
    case nlohmann::detail::value_t::discarded:
      return {};
  }
  return {};
}

template <class Library>
Library to(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return nullptr;
    case Json::Kind::boolean:
      return value.as<bool>();
    case Json::Kind::integer:
      return value.as<std::int64_t>();
    case Json::Kind::natural:
      return value.as<std::uint64_t>();
    case Json::Kind::real:
      return value.as<double>();
    case Json::Kind::text:
      return value.as<std::string>();
    case Json::Kind::list: {
      Library list = Library::array();
      for (const Json& item : value.items()) list.push_back(to<Library>(item));
      return list;
    }
    case Json::Kind::object: {
      Library object = Library::object();
      for (std::size_t i = 0; i < value.items().size(); ++i) object[value.names()[i]] = to<Library>(value.items()[i]);
      return object;
    }
  }
  return nullptr;
}

template <class Library>
std::string dump(const Json& value, int indent) {
  return to<Library>(value).dump(indent, ' ', false, Library::error_handler_t::replace);
}

}  // namespace

Json Json::object(std::initializer_list<Member> members) {
  Json json;
  json.kind_ = Kind::object;
  json.set(members);
  return json;
}

Json Json::parse(const std::string& text, Names names) {
  std::vector<std::set<std::string>> open;  // of the objects that aren't at their end
  const auto watch = [&](int, Ordered::parse_event_t event, const Ordered& value) {
    if (event == Ordered::parse_event_t::object_start) open.emplace_back();
    if (event == Ordered::parse_event_t::object_end) open.pop_back();
    if (event == Ordered::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      throw std::invalid_argument("there are two '" + value.get<std::string>() + "'");
    return true;
  };
  try {
    return from(names == Names::any ? Ordered::parse(text) : Ordered::parse(text, watch));
  } catch (const Ordered::exception& error) {
    // `[json.exception.parse_error.101] parse error at line 1 ...; last read: ...`, whose last bytes may be no text
    std::string what = error.what();
    if (const auto end = what.find("] "); what.starts_with('[') && end != std::string::npos) what.erase(0, end + 2);
    throw std::invalid_argument(what.substr(0, what.find("; last read")));
  }
}

Json Json::parse_or_null(const std::string& text) try { return parse(text); } catch (const std::invalid_argument&) {
  return {};
}

std::string Json::text(int indent, Order order) const {
  return order == Order::sorted ? dump<nlohmann::json>(*this, indent) : dump<Ordered>(*this, indent);
}

const Json* Json::find(const std::string& name) const {
  const auto at = std::find(names_.begin(), names_.end(), name);
  return at == names_.end() ? nullptr : &items_[static_cast<std::size_t>(at - names_.begin())];
}

const Json& Json::at(const std::string& name) const {
  const Json* found = find(name);
  if (found == nullptr) throw std::invalid_argument("'" + name + "' is missing");
  return *found;
}

Json& Json::operator[](const std::string& name) {
  if (is_null()) kind_ = Kind::object;
  require_kind(is_object(), "an object");
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at != names_.end()) return items_[static_cast<std::size_t>(at - names_.begin())];
  names_.push_back(name);
  return items_.emplace_back();
}

void Json::set(std::initializer_list<Member> members) {
  for (const auto& [name, value] : members) (*this)[name] = value;
}

void Json::add(Json item) {
  if (is_null()) kind_ = Kind::list;
  require_kind(is_list(), "a list");
  items_.push_back(std::move(item));
}

void Json::require_kind(bool holds, const char* wanted) const {
  if (!holds) throw std::invalid_argument("a value is not " + std::string(wanted));
}

std::int64_t Json::whole() const {
  if (kind_ != Kind::real) {
    require_kind(is_integer(), "a number");
    return integer_;
  }
  constexpr double limit = 9.2e18;
  require_kind(real_ >= -limit && real_ <= limit, "a number of this size");
  return static_cast<std::int64_t>(real_);
}

double Json::number() const {
  require_kind(is_number(), "a number");
  if (kind_ == Kind::real) return real_;
  return kind_ == Kind::natural ? static_cast<double>(static_cast<std::uint64_t>(integer_))
                                : static_cast<double>(integer_);
}

}  // namespace convoy
