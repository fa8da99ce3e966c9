// SPDX-License-Identifier: Apache-2.0
// An option as data. Parsing, --help, range checks, the INI that repeats a run and the configuration hash all walk the
// same tables of options (config/options.hpp; preprocess/options.cpp), so none of them can forget one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// Allowed numbers: low..high, ends excluded where said.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool low_excluded = false, high_excluded = false;
  bool contains(double value) const;
  std::string text() const;  ///< `> 0`, `0 to 1`, `>= 0 and < 1`
};
constexpr double unlimited = std::numeric_limits<double>::infinity();
constexpr Bounds at_least(double low) { return {.low = low}; }
constexpr Bounds above(double low) { return {.low = low, .low_excluded = true}; }
constexpr Bounds from_to(double low, double high) { return {.low = low, .high = high}; }
constexpr Bounds from_below(double low, double high) { return {.low = low, .high = high, .high_excluded = true}; }

/// Does the value decide the bits of the trained model? Then it stands in the configuration hash, unless the option's
/// declaration leaves it out.
enum class Bits : std::uint8_t { irrelevant, decides };
enum class Visibility : std::uint8_t { shown, hidden };

/// Where an option may stand. command_line: it is about this call (--dry-run), so no configuration file holds it.
enum class Place : std::uint8_t { anywhere, command_line };

/// What is wrong with a value; the parser adds the option, the value and what is allowed.
class BadValue : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value of an option, and what older versions called it.
struct Renamed {
  std::string now, then;
};

/// A value that other programs have (a pattern, see is_pattern_of), and what to write instead: `use --model-file`.
struct ForeignValue {
  std::string value, hint;
};

/// Bound to one struct: `set` and `print` work on a field of it, which must outlive the option.
struct Option {
  std::string name = {};     ///< `batch-size`
  std::string value = {};    ///< what help calls the value: `N`, `SECONDS`; empty: a switch with a --no- form
  std::string help = {};     ///< without a full stop; says the unit
  std::string implied = {};  ///< value of the option alone; another is given as --option=value
  std::string otherwise =
      {};                    ///< what help calls the default, if it depends on other options; empty: what `print` says
  std::string allowed = {};  ///< after `allowed: ` in messages; empty: anything
  std::function<void(const std::string&)> set = {};  ///< throws BadValue
  std::function<std::string()> print = {};           ///< as set takes it; empty: not set
  char letter = 0;
  std::vector<std::string> aliases = {};   ///< other programs' names for the same thing, and other letters
  std::vector<ForeignValue> foreign = {};  ///< values that `set` refuses, with what the message says of them
  Bits bits = Bits::irrelevant;
  std::vector<std::string> unhashed = {};   ///< values with which it does not stand in the hash
  std::function<bool()> hashed_where = {};  ///< false: it does not stand in the hash; null: always true
  std::vector<Renamed> hashed_as = {};      ///< values that stand in the hash under an older name
  /// Of an option that decides bits: values that compute the same but for rounding. A run that goes on with another of
  /// them trains the same. Null: any change trains something else.
  std::function<bool(const std::string&)> rounds = {};
  Visibility visibility = Visibility::shown;
  Place place = Place::anywhere;

  bool is_switch() const { return value.empty(); }
  bool is_path() const { return value == "DIR" || value == "FILE" || value == "WHERE" || value.starts_with("PATH"); }
  Option& also(std::initializer_list<const char*> names) {
    aliases = std::vector<std::string>(names.begin(), names.end());
    return *this;
  }
  Option& answers(std::initializer_list<ForeignValue> values) {
    foreign = values;
    return *this;
  }
  Option& short_form(char c) {
    letter = c;
    return *this;
  }
  Option& default_depends(std::string text) {
    otherwise = std::move(text);
    return *this;
  }
  Option& decides_bits() {
    bits = Bits::decides;
    return *this;
  }
  /// For an option that a version adds: with these values the program computes what it did before, and runs that began
  /// before keep their hash. "": if it is not set.
  Option& decides_bits_unless(std::initializer_list<const char*> values) {
    unhashed = std::vector<std::string>(values.begin(), values.end());
    return decides_bits();
  }
  /// The same for an option that acts only together with others: it is hashed if acts().
  Option& decides_bits_where(std::function<bool()> acts) {
    hashed_where = std::move(acts);
    return decides_bits();
  }
  /// For an option that decides bits, with values that a version renames.
  Option& hashed_by_old_names(std::vector<Renamed> values) {
    hashed_as = std::move(values);
    return *this;
  }
  /// What the configuration hash takes of it, as `name=value`; empty: nothing.
  std::string hashed() const;
  Option& only_rounds() {
    rounds = [](const std::string&) { return true; };
    return *this;
  }
  Option& only_rounds_among(std::vector<std::string> values) {
    rounds = [among = std::move(values)](const std::string& one) {
      return std::find(among.begin(), among.end(), one) != among.end();
    };
    return *this;
  }
  Option& only_on_command_line() {
    place = Place::command_line;
    return *this;
  }
  Option& hidden() {
    visibility = Visibility::hidden;
    return *this;
  }
};

/// A heading of --help and what stands below it.
struct OptionGroup {
  std::string title;
  std::vector<Option> options;
  Option& add(Option option) { return options.emplace_back(std::move(option)); }
};

// Values as texts. Readers throw BadValue; printed numbers read back to the same bits.
double read_number(const std::string& text, const Bounds& bounds);
Index read_integer(const std::string& text, const Bounds& bounds);
bool read_bool(const std::string& text);
std::string print_number(double value);
std::string print_number(float value);
std::vector<std::string> split_list(const std::string& text);
/// Hyphens and underscores are the same.
bool is_same_word(const std::string& a, const std::string& b);
/// Is it the same word, or with a pattern that ends in *, does the word begin so?
bool is_pattern_of(const std::string& pattern, const std::string& word);

/// Joined by commas.
template <class T>
std::string print_list(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) {
    if (!text.empty()) text += ',';
    if constexpr (std::is_integral_v<T>) {
      text += std::to_string(value);
    } else {
      text += print_number(value);
    }
  }
  return text;
}

Option text_option(std::string name, std::string value, std::string& to, std::string help);
Option switch_option(std::string name, bool& to, std::string help);
/// `names`: allowed texts; an empty text in `to` means the default of whoever reads it.
Option word_option(std::string name, std::string& to, std::vector<std::string> names, std::string help);

/// The part of `bounds` that an integer type can hold.
template <class T>
Bounds narrowed(Bounds bounds) {
  if constexpr (std::is_integral_v<T>) {
    bounds.high = std::min(bounds.high, static_cast<double>(std::numeric_limits<T>::max()));
  }
  return bounds;
}

/// Any arithmetic field.
template <class T>
Option number_option(std::string name, std::string value, T& to, const Bounds& bounds, std::string help) {
  Option option{.name = std::move(name), .value = std::move(value), .help = std::move(help), .allowed = bounds.text()};
  option.set = [&to, bounds](const std::string& text) {
    if constexpr (std::is_integral_v<T>) {
      to = static_cast<T>(read_integer(text, narrowed<T>(bounds)));
    } else {
      to = static_cast<T>(read_number(text, bounds));
    }
  };
  option.print = [&to] {
    if constexpr (std::is_integral_v<T>) {
      return std::to_string(to);
    } else {
      return print_number(to);
    }
  };
  return option;
}

/// Comma-separated numbers.
template <class T>
Option list_option(std::string name, std::string value, std::vector<T>& to, const Bounds& bounds, std::string help) {
  Option option{.name = std::move(name), .value = std::move(value), .help = std::move(help)};
  option.allowed = "a comma-separated list of numbers " + bounds.text();
  option.set = [&to, bounds](const std::string& text) {
    std::vector<T> values;
    for (const std::string& item : split_list(text)) {
      if constexpr (std::is_integral_v<T>) {
        values.push_back(static_cast<T>(read_integer(item, narrowed<T>(bounds))));
      } else {
        values.push_back(static_cast<T>(read_number(item, bounds)));
      }
    }
    to = std::move(values);
  };
  option.print = [&to] { return print_list(to); };
  return option;
}

/// One of the names of an enumeration; `others`: names in other programs, which are understood and not shown.
template <class Enum>
Option choice_option(std::string name, Enum& to, std::vector<std::pair<std::string, Enum>> names, std::string help,
                     const std::vector<std::pair<std::string, Enum>>& others = {}) {
  Option option{.name = std::move(name), .help = std::move(help)};
  for (const auto& [text, unused] : names) option.value += (option.value.empty() ? "" : "|") + text;
  for (const auto& [text, unused] : names) option.allowed += (option.allowed.empty() ? "" : ", ") + text;
  names.insert(names.end(), others.begin(), others.end());
  option.set = [&to, names](const std::string& text) {
    for (const auto& [known, value] : names) {
      if (is_same_word(known, text)) {
        to = value;
        return;
      }
    }
    throw BadValue("is not one of the choices");
  };
  option.print = [&to, names] {
    for (const auto& [known, value] : names) {
      if (value == to) return known;
    }
    return std::string();
  };
  return option;
}

}  // namespace convoy
