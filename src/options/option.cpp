// SPDX-License-Identifier: Apache-2.0
#include "options/option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

namespace convoy {
namespace {

template <class T>
T read(const std::string& text, const char* what) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    const bool tiny = std::is_floating_point_v<T> && std::abs(std::strtod(text.c_str(), nullptr)) < 1;
    throw BadValue(tiny ? "is too close to 0" : "is too large");
  }
  if (text.empty() || error != std::errc() || stop != end) throw BadValue(what);
  return value;
}

}  // namespace

bool Bounds::contains(double value) const {
  return (low_excluded ? value > low : value >= low) && (high_excluded ? value < high : value <= high);
}

std::string Bounds::text() const {
  const bool open_low = std::isinf(low), open_high = std::isinf(high);
  if (open_low && open_high) return "a number";
  std::string low_text = fmt::format("{} {}", low_excluded ? ">" : ">=", low);
  std::string high_text = fmt::format("{} {}", high_excluded ? "<" : "<=", high);
  if (open_high) return low_text;
  if (open_low) return high_text;
  if (!low_excluded && !high_excluded) return fmt::format("{} to {}", low, high);
  return low_text + " and " + high_text;
}

std::string Option::hashed() const {
  if (bits == Bits::irrelevant || (hashed_where && !hashed_where())) return {};
  std::string text = print();
  if (std::find(unhashed.begin(), unhashed.end(), text) != unhashed.end()) return {};
  const auto renamed =
      std::find_if(hashed_as.begin(), hashed_as.end(), [&](const Renamed& one) { return one.now == text; });
  if (renamed != hashed_as.end()) text = renamed->then;
  return name + '=' + text;
}

double read_number(const std::string& text, const Bounds& bounds) {
  const auto value = read<double>(text, "is not a number");
  if (!std::isfinite(value)) throw BadValue("is not a finite number");
  if (!bounds.contains(value)) throw BadValue("is out of range");
  return value;
}

Index read_integer(const std::string& text, const Bounds& bounds) {
  const auto value = read<Index>(text, "is not a whole number");
  // Neighbours above 2^53 would be one double.
  const auto exact = static_cast<long double>(value);
  static_assert(std::numeric_limits<long double>::digits >= std::numeric_limits<Index>::digits);
  const bool high_enough = bounds.low_excluded ? exact > bounds.low : exact >= bounds.low;
  const bool low_enough = bounds.high_excluded ? exact < bounds.high : exact <= bounds.high;
  if (!high_enough || !low_enough) throw BadValue("is out of range");
  return value;
}

bool read_bool(const std::string& text) {
  for (const char* word : {"true", "yes", "on", "1"}) {
    if (text == word) return true;
  }
  for (const char* word : {"false", "no", "off", "0"}) {
    if (text == word) return false;
  }
  throw BadValue("is neither true nor false");
}

std::string print_number(double value) { return fmt::format("{}", value); }
std::string print_number(float value) { return fmt::format("{}", value); }

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items(1);
  for (const char c : text) {
    if (c == ',') {
      items.emplace_back();
    } else if (c != ' ') {
      items.back() += c;
    }
  }
  return items;
}

bool is_same_word(const std::string& a, const std::string& b) {
  const auto same = [](char x, char y) { return x == y || ((x == '-' || x == '_') && (y == '-' || y == '_')); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool is_pattern_of(const std::string& pattern, const std::string& word) {
  if (!pattern.ends_with('*')) return is_same_word(pattern, word);
  const std::size_t length = pattern.size() - 1;
  return word.size() >= length && is_same_word(pattern.substr(0, length), word.substr(0, length));
}

Option text_option(std::string name, std::string value, std::string& to, std::string help) {
  Option option{.name = std::move(name), .value = std::move(value), .help = std::move(help)};
  option.set = [&to](const std::string& text) { to = text; };
  option.print = [&to] { return to; };
  return option;
}

Option switch_option(std::string name, bool& to, std::string help) {
  Option option{.name = std::move(name), .help = std::move(help), .allowed = "true, false"};
  option.set = [&to](const std::string& text) { to = read_bool(text); };
  option.print = [&to] { return std::string(to ? "true" : "false"); };
  return option;
}

Option word_option(std::string name, std::string& to, std::vector<std::string> names, std::string help) {
  Option option{.name = std::move(name), .help = std::move(help)};
  for (const auto& text : names) {
    option.value += (option.value.empty() ? "" : "|") + text;
    option.allowed += (option.allowed.empty() ? "" : ", ") + text;
  }
  option.set = [&to, names = std::move(names)](const std::string& text) {
    for (const auto& known : names) {
      if (is_same_word(known, text)) {
        to = known;
        return;
      }
    }
    throw BadValue("is not one of the choices");
  };
  option.print = [&to] { return to; };
  return option;
}

}  // namespace convoy
