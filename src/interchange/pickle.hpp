// SPDX-License-Identifier: Apache-2.0
// Python's pickle, protocols 2 to 5, as far as a saved state dict and what training programs save beside it need it.
// The reader makes values; it calls and imports nothing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

using PickleId = std::int32_t;

struct PickleValue {
  /// persistent: items = {the reference to what the pickler stored elsewhere}. made: items = {global, arguments} of a
  /// call that Python would make. other: bytes, a set, an integer of more than 64 bits; its content is dropped.
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,
    global,
    persistent,
    made,
    other
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< boolean, integer
  double real = 0;
  std::string text;             ///< of global: `collections.OrderedDict`
  std::vector<PickleId> items;  ///< of a dict: key, value, key, value
};

/// Values refer to each other by number, so nesting and cycles need no recursion.
class Pickle {
 public:
  using Kind = PickleValue::Kind;

  /// `globals`: the only ones that may occur. An OrderedDict or defaultdict becomes a dict. Attributes, and items of
  /// other objects that Python would make, are dropped. Throws Error(data) naming `what`.
  Pickle(std::string_view bytes, const std::vector<std::string_view>& globals, const std::string& what);

  const PickleValue& root() const { return at(root_); }
  const PickleValue& at(PickleId id) const { return values_.at(static_cast<std::size_t>(id)); }
  /// The value under a text key of a dict; null: there is none.
  const PickleValue* find(const PickleValue& dict, std::string_view key) const;

 private:
  friend class PickleReader;
  std::vector<PickleValue> values_;
  PickleId root_ = 0;
};

}  // namespace convoy
