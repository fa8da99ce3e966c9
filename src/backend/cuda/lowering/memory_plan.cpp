// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/memory_plan.hpp"

namespace convoy::cuda {

Placement plan_memory(const Recipe& recipe) {
  std::vector<Lifetime> lifetimes;
  const int last = static_cast<int>(recipe.steps.size());
  for (const Buffer& buffer : recipe.buffers) {
    Lifetime lifetime{buffer.bytes, buffer.first, buffer.last};
    if (buffer.kind == BufferKind::fixed) lifetime = {buffer.bytes, 0, last};
    if (lifetime.first < 0) lifetime = {0, 0, 0};  // nobody's
    lifetimes.push_back(lifetime);
  }
  return place(lifetimes);
}

}  // namespace convoy::cuda
