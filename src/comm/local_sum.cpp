// SPDX-License-Identifier: Apache-2.0
#include "comm/local_sum.hpp"

#include "core/errors.hpp"

namespace convoy {

bool LocalSum::add(const Reduction& r) const {
  if (r.parts.empty()) {
    device_.fill(r.out, r.count, 0.0F);
    return true;
  }
  std::size_t first = r.parts.size() - 1;
  for (std::size_t i = 0; i < r.parts.size(); ++i)
    if (r.parts[i].data == r.out) first = i;
  require(!reproducible_ || first == r.parts.size() - 1,
          "a reproducible sum on one rank goes into the last part or beside the parts");
  if (r.parts[first].data != r.out) device_.copy(r.out, r.parts[first].data, r.count, 1.0F);
  for (std::size_t i = r.parts.size(); i-- > 0;)
    if (i != first) device_.add(r.out, r.parts[i].data, r.count);
  return r.parts.size() > 1 || r.parts[first].data != r.out;
}

void LocalSum::require_tree(std::span<const Part> parts) const {
  bool same = parts.size() == nodes_.size();
  for (std::size_t i = 0; same && i < nodes_.size(); ++i)
    same = parts[i].first == nodes_[i].first && parts[i].size == nodes_[i].size;
  require(same, "the parts of a reproducible sum are the nodes of this rank's run");
}

}  // namespace convoy
