// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/shard.hpp"

#include <algorithm>
#include <numeric>

#include "preprocess/fields.hpp"

namespace convoy::preparation {

std::string to_text(const std::vector<Container>& containers) {
  FieldWriter fields;
  for (const Container& c : containers) fields.put(c.kind).put(c.name).put(static_cast<Index>(c.split));
  return fields.text();
}

std::vector<Container> containers_from_text(const std::string& text) {
  std::vector<Container> containers;
  for (FieldReader fields(text); !fields.done();) {
    Container c;
    c.kind = fields.number();
    c.name = fields.text();
    c.split = static_cast<std::size_t>(fields.number());
    containers.push_back(std::move(c));
  }
  return containers;
}

std::string to_text(const std::vector<Shard>& shards) {
  FieldWriter fields;
  for (const Shard& s : shards) {
    fields.put(s.kind).put(static_cast<Index>(s.split)).put(s.object).put(s.prefix).put(s.class_name);
    fields.put(s.begin).put(s.end).put(Index{s.nested}).put(s.weight).put(s.position_weight);
  }
  return fields.text();
}

std::vector<Shard> shards_from_text(const std::string& text) {
  std::vector<Shard> shards;
  for (FieldReader fields(text); !fields.done();) {
    Shard s;
    s.kind = fields.number();
    s.split = static_cast<Split>(fields.number());
    s.object = fields.text();
    s.prefix = fields.text();
    s.class_name = fields.text();
    s.begin = fields.number();
    s.end = fields.number();
    s.nested = fields.number() != 0;
    s.weight = fields.number();
    s.position_weight = fields.number();
    shards.push_back(std::move(s));
  }
  return shards;
}

std::vector<int> deal_shards(const std::vector<Shard>& shards, const std::vector<Index>& left, int ranks) {
  std::vector<std::size_t> order(shards.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return left[a] > left[b]; });
  std::vector<Index> load(static_cast<std::size_t>(ranks));
  std::vector<int> owner(shards.size());
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += left[i];
    owner[i] = static_cast<int>(least - load.begin());
  }
  return owner;
}

}  // namespace convoy::preparation
