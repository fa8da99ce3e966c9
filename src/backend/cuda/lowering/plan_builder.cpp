// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/plan_builder.hpp"

#include <algorithm>

#include "backend/cuda/lowering/beside.hpp"
#include "backend/cuda/lowering/kernel_selector.hpp"
#include "backend/cuda/lowering/recomputation.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

constexpr Index float_vectors = static_cast<Index>(NormVector::low_scale);

/// Floats between the vectors of a norm; low ones lie as far apart.
Index vector_stride(const Value& value) { return align_floats(value.layout.c); }

}  // namespace

NormVectors NormRefs::at(const LaunchContext& launch) const {
  const auto floats = [&](NormVector which) { return launch.floats((*this)[which]); };
  return {.mean = floats(NormVector::mean),
          .rstd = floats(NormVector::rstd),
          .scale = floats(NormVector::scale),
          .shift = floats(NormVector::shift),
          .a = floats(NormVector::a),
          .b = floats(NormVector::b),
          .d = floats(NormVector::d),
          .low_scale = launch.at((*this)[NormVector::low_scale]),
          .low_shift = launch.at((*this)[NormVector::low_shift])};
}

PlanBuilder::PlanBuilder(const ExecutionSpec& spec, const Lowering& lowering)
    : spec_(spec),
      lowering_(lowering),
      shapes_(infer_shapes(spec.plan.graph, spec.compile.height, spec.compile.width)),
      exchange_ranges_(lowering::exchange_ranges(spec.plan, lowering)) {
  execution_.samples = spec.compile.samples;
  for (const Norm& norm : lowering.norms)
    norm_buffers_.push_back(add_buffer(BufferKind::fixed, (float_vectors + 2) * vector_stride(value(norm.value)) * 4));
}

int PlanBuilder::add_buffer(BufferKind kind, Index bytes) {
  execution_.buffers.push_back({kind, bytes});
  return static_cast<int>(execution_.buffers.size()) - 1;
}

BufferRef PlanBuilder::parameter(int row) const {
  return {BufferRef::Base::set, -1, 4 * spec_.plan.table.rows[index_of(row)].range.begin};
}

BufferRef PlanBuilder::gradient(int row) const {
  return {BufferRef::Base::gradients, -1, 4 * spec_.plan.table.rows[index_of(row)].range.begin};
}

BufferRef PlanBuilder::filter(int row) const {
  const FilterCopy& copy = spec_.copies.rows[index_of(row)];
  require(copy.offset >= 0, "a filter without a copy");
  return {BufferRef::Base::copies, -1, copy.offset * bytes_of(storage())};
}

BufferRef PlanBuilder::vector(int id, NormVector which) const {
  return place(norm_buffers_[index_of(id)], static_cast<Index>(which) * 4 * vector_stride(value(norm(id).value)));
}

NormRefs PlanBuilder::vectors(int id, std::initializer_list<NormVector> wanted) const {
  NormRefs places;
  for (const NormVector which : wanted) places[which] = vector(id, which);
  return places;
}

void PlanBuilder::add_access(Step& step, const BufferRef& place, Access access) const {
  if (place.base == BufferRef::Base::buffer) step.accesses.push_back({place.buffer, access});
}

Step& PlanBuilder::add_step(std::string what, std::vector<NodeId> nodes, const std::vector<BufferRef>& reads,
                            const std::vector<BufferRef>& writes, std::function<void(const LaunchContext&)> run) {
  Step step{.what = std::move(what), .nodes = std::move(nodes), .section = section_};
  for (const BufferRef& place : reads) add_access(step, place, Access::read);
  for (const BufferRef& place : writes) add_access(step, place, Access::write);
  step.run = std::move(run);
  execution_.steps.push_back(std::move(step));
  return execution_.steps.back();
}

Step& PlanBuilder::add_graph(GraphCall call) {
  const Index bytes = call.operation->workspace_bytes();
  const BufferRef workspace = bytes > 0 ? place(add_buffer(BufferKind::workspace, bytes)) : BufferRef{};
  Step& step = add_step(std::move(call.what), std::move(call.nodes), {}, {workspace},
                        [operands = call.operands, workspace, operation = call.operation](const LaunchContext& launch) {
                          Pointers pointers;
                          for (const auto& [role, ref] : operands) pointers[role] = launch.at(ref);
                          pointers.workspace = launch.at(workspace);
                          operation->execute(pointers, launch.stream);
                        });
  for (const Operand& operand : operands_of(call.graph)) {
    const auto found = std::find_if(call.operands.begin(), call.operands.end(),
                                    [&](const auto& entry) { return entry.first == operand.role; });
    require(found != call.operands.end() && found->second, "a graph with an operand that has no place");
    add_access(step, found->second, operand.access);
  }
  step.graph = call.graph;
  step.hidden_bytes = hidden_bytes(call.graph, *call.operation);
  step.operation = std::move(call.operation);
  return step;
}

void PlanBuilder::tag(std::size_t begin, int value) {
  for (std::size_t k = begin; k < execution_.steps.size(); ++k)
    if (execution_.steps[k].serves < 0) execution_.steps[k].serves = value;
}

/// Without sums over replicas nothing gains from gradients that are ready early.
std::vector<lowering::Stage> PlanBuilder::make_stages() const {
  if (plan().table.flags.count > 1 || !exchanges_.empty())
    return lowering::make_stages(plan(), execution_.steps.size(), final_rows_, exchanges_);
  return {{execution_.steps.size(), {{0, plan().table.flags.end()}, SumTiming::overlapped}}};
}

ExecutionPlan PlanBuilder::finish(Streams streams) {
  if (training()) {
    execution_.stages = make_stages();
    execution_.gaps = lowering::find_gaps(plan(), lowering_, final_rows_);
    const Index arrivals = add_arrivals(1);
    collector_.insert_steps(execution_, plan(), spec_.copies, arrivals);
    if (streams == Streams::two) choose_beside(execution_);
  } else {
    execution_.stages = {{execution_.steps.size(), {}}};
  }
  const CompileSpec& compile = spec_.compile;
  recompute_and_place(execution_, training() ? compile.recompute : Recompute::off, compile.arena_limit * 4, streams);
  collector_.place_pieces(execution_);
  return std::move(execution_);
}

}  // namespace convoy::cuda
