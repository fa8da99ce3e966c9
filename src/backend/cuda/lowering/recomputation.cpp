// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/recomputation.hpp"

#include <algorithm>

#include "backend/cuda/lowering/beside.hpp"
#include "backend/lowering/recompute.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

using lowering::KeptTensor;
using lowering::RepeatedBlock;
using lowering::TouchingStep;

double flops_of(const Step& step) { return step.operation ? cuda::flops_of(step.graph) : 0; }

/// The vectors of norms (means, scales ...) are kept; the second run would compute the same values. Statistics sums are
/// repeated with the tensor they belong to. Steps with side effects (image counter, losses) never repeat.
std::vector<RepeatedBlock> find_blocks(const ExecutionPlan& execution) {
  std::vector<KeptTensor> tensors;
  for (const Buffer& buffer : execution.buffers) {
    const bool activation = buffer.kind == BufferKind::activation;
    tensors.push_back({.bytes = activation ? buffer.bytes : 0,
                       .kind = activation ? KeptTensor::Kind::activation : KeptTensor::Kind::other});
  }
  // Forward stages of synchronised statistics are separated by steps that collect gradients, so take the last forward
  // step.
  const auto of_forward = [](const Step& step) { return step.section == Section::forward; };
  const auto& all = execution.steps;
  const auto forward_steps = std::find_if(all.rbegin(), all.rend(), of_forward).base() - all.begin();
  std::vector<TouchingStep> steps;
  for (const Step& step : all) {
    constexpr double flops_per_byte = 100;
    TouchingStep touching{.backward = static_cast<std::ptrdiff_t>(steps.size()) >= forward_steps};
    touching.cost = flops_of(step) + flops_per_byte * static_cast<double>(execution.bytes_moved(step));
    for (const BufferAccess& access : step.accesses)
      (access.access == Access::read ? touching.reads : touching.writes).push_back(access.buffer);
    const auto makes_losses = [&](const BufferAccess& access) {
      return access.access == Access::write && access.buffer == execution.losses;
    };
    // The input counts images, the loss adds up what it finds.
    touching.once = touching.reads.empty() || std::any_of(step.accesses.begin(), step.accesses.end(), makes_losses);
    steps.push_back(std::move(touching));
  }
  return lowering::find_blocks(tensors, steps);
}

/// Steps and stages with the blocks, each in front of the step that needs it. Steps beside the row wait for theirs.
ExecutionPlan with_blocks(const ExecutionPlan& plain, const std::vector<RepeatedBlock>& blocks, Streams streams) {
  ExecutionPlan result = plain;
  result.steps.clear();
  for (std::size_t k = 0; k <= plain.steps.size(); ++k) {
    // What is inserted at the end of a stage belongs to the next one.
    for (std::size_t stage = 0; stage < plain.stages.size(); ++stage)
      if (plain.stages[stage].end == k) result.stages[stage].end = result.steps.size();
    if (k == plain.steps.size()) break;
    for (const RepeatedBlock& block : blocks) {
      if (block.before != k) continue;
      for (const std::size_t i : block.steps) {
        Step again = plain.steps[i];
        again.section = Section::backward;
        again.again = true;
        result.steps.push_back(std::move(again));
      }
    }
    result.steps.push_back(plain.steps[k]);
  }
  if (streams == Streams::two) choose_beside(result);
  return result;
}

/// `blocks`: those whose steps run again.
lowering::Placement place(const ExecutionPlan& execution, const std::vector<RepeatedBlock>& blocks) {
  const int steps = static_cast<int>(execution.steps.size());
  std::vector<lowering::Lifetime> lifetimes;
  std::vector<bool> made_again;
  for (const Buffer& buffer : execution.buffers) {
    const bool fixed = buffer.kind == BufferKind::fixed;
    lifetimes.push_back({.bytes = buffer.bytes, .first = fixed ? 0 : -1, .last = fixed ? steps : -1});
    made_again.push_back(buffer.kind == BufferKind::workspace);
  }
  for (const RepeatedBlock& block : blocks)
    for (const int tensor : block.tensors) made_again[index_of(tensor)] = true;
  for (int k = 0; k < steps; ++k) {
    const Step& step = execution.steps[index_of(k)];
    for (const BufferAccess& access : step.accesses) {
      const std::size_t buffer = index_of(access.buffer);
      lowering::Lifetime& lifetime = lifetimes[buffer];
      require(lifetime.first >= 0 || access.access == Access::write, "a buffer is read before it is written");
      if (execution.buffers[buffer].kind == BufferKind::fixed) continue;
      if (step.again && made_again[buffer] && lifetime.resumes == 0)
        lifetime.resume(k);
      else
        lifetime.touch(k);
    }
  }
  extend_lifetimes(execution, lifetimes);
  return lowering::place(lifetimes, block_alignment);
}

}  // namespace

void recompute_and_place(ExecutionPlan& execution, Recompute wanted, Index limit, Streams streams) {
  execution.placement = place(execution, {});
  if (wanted == Recompute::off) return;
  const std::vector<RepeatedBlock> blocks = find_blocks(execution);
  const auto chosen = lowering::choose_blocks(wanted, blocks, limit, [&](const std::vector<RepeatedBlock>& some) {
    return place(with_blocks(execution, some, streams), some).total_bytes;
  });
  execution.recomputation = {.blocks = static_cast<int>(chosen.size()),
                             .found = static_cast<int>(blocks.size()),
                             .floats_without = execution.placement.total_bytes / 4};
  if (chosen.empty()) return;
  execution = with_blocks(execution, chosen, streams);
  execution.placement = place(execution, chosen);
  double once = 0, again = 0;
  for (const Step& step : execution.steps) (step.again ? again : once) += flops_of(step);
  if (once > 0) execution.recomputation.more_flops = again / once;
}

}  // namespace convoy::cuda
