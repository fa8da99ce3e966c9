// SPDX-License-Identifier: Apache-2.0
#include "preprocess/images/unit.hpp"

#include <algorithm>
#include <numeric>

#include "preprocess/images/fields.hpp"

namespace convoy::preparation {

std::string to_text(const std::vector<Unit>& units) {
  FieldWriter fields;
  for (const Unit& u : units) {
    fields.put(static_cast<Index>(u.kind)).put(static_cast<Index>(u.pool)).put(u.object).put(u.prefix);
    fields.put(u.class_name).put(u.begin).put(u.end).put(Index{u.nested}).put(u.weight);
  }
  return fields.text();
}

std::vector<Unit> units_from_text(const std::string& text) {
  std::vector<Unit> units;
  for (FieldReader fields(text); !fields.done();) {
    Unit u;
    u.kind = static_cast<UnitKind>(fields.number());
    u.pool = static_cast<Pool>(fields.number());
    u.object = fields.text();
    u.prefix = fields.text();
    u.class_name = fields.text();
    u.begin = fields.number();
    u.end = fields.number();
    u.nested = fields.number() != 0;
    u.weight = fields.number();
    units.push_back(std::move(u));
  }
  return units;
}

std::vector<int> deal_units(const std::vector<Unit>& units, const std::vector<Index>& left, int ranks) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return left[a] > left[b]; });
  std::vector<Index> load(static_cast<std::size_t>(ranks));
  std::vector<int> owner(units.size());
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += left[i];
    owner[i] = static_cast<int>(least - load.begin());
  }
  return owner;
}

}  // namespace convoy::preparation
