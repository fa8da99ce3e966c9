// SPDX-License-Identifier: Apache-2.0
#include "preprocess/order.hpp"

#include <algorithm>

#include "core/hash.hpp"

namespace convoy::preparation {

std::vector<Index> shuffle_by_name(const Source& source, Split split, std::uint64_t seed) {
  struct Key {
    std::uint64_t hash;
    Index sample;
  };
  std::vector<Key> keys(static_cast<std::size_t>(source.samples(split)));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto sample = static_cast<Index>(i);
    keys[i] = {hash_text(source.name(split, sample), seed), sample};
  }
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    return source.name(split, a.sample) < source.name(split, b.sample);
  });
  std::vector<Index> order(keys.size());
  std::transform(keys.begin(), keys.end(), order.begin(), [](const Key& key) { return key.sample; });
  return order;
}

Range cut_evenly(Index samples, Index partitions, Index number) {
  const Index share = samples / partitions, rest = samples % partitions;
  return {number * share + std::min(number, rest), share + (number < rest ? 1 : 0)};
}

}  // namespace convoy::preparation
