// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/shard.hpp"

#include <algorithm>
#include <numeric>

namespace convoy::preparation {

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
