// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/recipe.hpp"

#include <algorithm>
#include <set>

#include "backend/cuda/lowering/assembler.hpp"
#include "backend/cuda/lowering/backward.hpp"
#include "backend/cuda/lowering/forward.hpp"

namespace convoy::cuda {

void* Frame::at(const Place& place) const {
  const auto address = [&](const void* base) {
    return const_cast<std::byte*>(static_cast<const std::byte*>(base)) + place.offset;
  };
  switch (place.base) {
    case Place::Base::none:
      return nullptr;
    case Place::Base::buffer:
      return arena + offsets[place.buffer] + place.offset;
    case Place::Base::copies:
      return address(copies);
    case Place::Base::set:
      return address(set);
    case Place::Base::gradients:
      return address(gradients);
  }
  return nullptr;
}

Index Recipe::bytes_moved(const Step& step) const {
  Index bytes = step.hidden_bytes;
  std::set<int> seen;
  for (const Touch& touch : step.touches) {
    const Buffer& buffer = buffers[static_cast<std::size_t>(touch.buffer)];
    if (buffer.kind == BufferKind::activation && seen.insert(touch.buffer).second) bytes += buffer.bytes;
  }
  return bytes;
}

Recipe make_recipe(const RecipeSpec& spec) {
  const Lowering lowering = lower(spec.plan, spec.copies, spec.compile.height, spec.compile.width);
  Assembler assembler(spec, lowering);
  Chooser chooser(spec, lowering);
  Forward forward(assembler, chooser);
  forward.run();
  if (spec.compile.mode == Mode::train) Backward(assembler, chooser, forward.tensors()).run();
  assembler.recipe().choices = chooser.text();
  return assembler.finish();
}

}  // namespace convoy::cuda
