// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/execution_plan.hpp"

#include <algorithm>
#include <set>

#include "backend/cuda/lowering/backward_pass.hpp"
#include "backend/cuda/lowering/forward_pass.hpp"
#include "backend/cuda/lowering/plan_builder.hpp"

namespace convoy::cuda {

void* LaunchContext::at(const BufferRef& place) const {
  const auto address = [&](const void* base) {
    return const_cast<std::byte*>(static_cast<const std::byte*>(base)) + place.offset;
  };
  switch (place.base) {
    case BufferRef::Base::none:
      return nullptr;
    case BufferRef::Base::buffer:
      return arena + offsets[place.buffer] + place.offset;
    case BufferRef::Base::copies:
      return address(copies);
    case BufferRef::Base::set:
      return address(set);
    case BufferRef::Base::gradients:
      return address(gradients);
  }
  return nullptr;
}

Index ExecutionPlan::bytes_moved(const Step& step) const {
  Index bytes = step.hidden_bytes;
  std::set<int> seen;
  for (const BufferAccess& access : step.accesses) {
    const Buffer& buffer = buffers[index_of(access.buffer)];
    if (buffer.kind == BufferKind::activation && seen.insert(access.buffer).second) bytes += buffer.bytes;
  }
  return bytes;
}

ExecutionPlan make_execution_plan(const ExecutionSpec& spec) {
  const Lowering lowering = lower(spec.plan, spec.copies, spec.compile);
  PlanBuilder builder(spec, lowering);
  KernelSelector selector(spec, lowering);
  ForwardPass forward(builder, selector);
  forward.run();
  if (spec.compile.mode == Mode::train) BackwardPass(forward).run();
  builder.execution().choices = selector.text();
  return builder.finish(selector.streams());
}

}  // namespace convoy::cuda
