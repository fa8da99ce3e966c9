// SPDX-License-Identifier: Apache-2.0
// What the passes share while they write an execution plan: buffers, steps, where the vectors of norms lie.
#pragma once
#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/lowering/execution_plan.hpp"
#include "backend/cuda/lowering/gradient_collector.hpp"
#include "backend/cuda/lowering/layouts.hpp"
#include "backend/lowering/stages.hpp"

namespace convoy::cuda {

/// Vectors of one norm in its buffer.
enum class NormVector : std::uint8_t { mean, rstd, scale, shift, a, b, d, low_scale, low_shift };

/// Where a norm's vectors lie, for steps to keep. Those that a step doesn't want are none.
struct NormRefs {
  std::array<BufferRef, 9> of;
  BufferRef& operator[](NormVector which) { return of[static_cast<std::size_t>(which)]; }
  const BufferRef& operator[](NormVector which) const { return of[static_cast<std::size_t>(which)]; }
  NormVectors at(const LaunchContext& launch) const;
};

/// Where a reduction works.
struct ReductionRefs {
  BufferRef sums;
  Index arrivals = 0;
  ReductionPlace at(const LaunchContext& launch) const {
    return {static_cast<double*>(launch.at(sums)), launch.arrivals + arrivals};
  }
};

/// A cuDNN graph with its operands. The builder adds the workspace.
struct GraphCall {
  std::string what;
  ConvolutionGraph graph;
  std::shared_ptr<Operation> operation;
  std::vector<std::pair<Role, BufferRef>> operands;
  std::vector<NodeId> nodes;
};

class PlanBuilder {
 public:
  PlanBuilder(const ExecutionSpec& spec, const Lowering& lowering);

  const Plan& plan() const { return spec_.plan; }
  const CompileSpec& compile() const { return spec_.compile; }
  const Value& value(int id) const { return lowering_.values[index_of(id)]; }
  int value_count() const { return static_cast<int>(lowering_.values.size()); }
  const std::vector<Value>& values() const { return lowering_.values; }
  const Norm& norm(int id) const { return lowering_.norms[index_of(id)]; }
  int norm_count() const { return static_cast<int>(lowering_.norms.size()); }
  const Lowering& lowering() const { return lowering_; }
  /// The node of an operation.
  const Node& node(int value_id) const { return spec_.plan.graph.nodes[index_of(value(value_id).node)]; }
  template <class T>
  const T& attributes(NodeId node) const {
    return std::get<T>(spec_.plan.graph.nodes[index_of(node)].attributes);
  }
  const NormStatistics& statistics(const Norm& norm) const { return spec_.plan.table.norms[index_of(norm.table)]; }
  const Parameter& row(int row) const { return spec_.plan.table.rows[index_of(row)]; }
  /// The shape of a node's output for one sample, as the network sees it.
  const Shape& shape(NodeId node) const { return shapes_[index_of(node)]; }
  Mode mode() const { return spec_.compile.mode; }
  bool training() const { return mode() == Mode::train; }
  Storage storage() const { return spec_.copies.storage; }
  Index samples() const { return spec_.compile.samples; }
  Index rows(int id) const { return samples() * pixels_of(value(id).layout); }
  Index bytes(int id) const { return samples() * elements_of(value(id).layout) * bytes_of(storage()); }
  bool synchronised() const { return spec_.plan.sync_bn && training(); }
  bool trains(int row) const { return spec_.plan.table.rows[index_of(row)].trainable; }

  int add_buffer(BufferKind kind, Index bytes);
  BufferRef place(int buffer, Index offset = 0) const { return {BufferRef::Base::buffer, buffer, offset}; }
  /// A tensor like the value.
  BufferRef add_tensor(int id) { return place(add_buffer(BufferKind::activation, bytes(id))); }
  BufferRef add_tensor_of(BufferKind kind, Index bytes) { return place(add_buffer(kind, bytes)); }
  BufferRef add_floats(Index count) { return place(add_buffer(BufferKind::channels, count * 4)); }
  BufferRef parameter(int row) const;
  BufferRef gradient(int row) const;
  /// None where the row isn't trained.
  BufferRef trained_gradient(int row) const { return trains(row) ? gradient(row) : BufferRef{}; }
  BufferRef filter(int row) const;
  /// Row of the weight of a convolution or linear layer.
  int weight_row(int value_id) const { return lowering::parameter_row(spec_.plan, value(value_id).node, 0); }
  const FilterCopy& copy(int row) const { return spec_.copies.rows[index_of(row)]; }
  BufferRef vector(int norm, NormVector which) const;
  NormRefs vectors(int norm, std::initializer_list<NormVector> wanted) const;
  const lowering::ExchangeRanges& exchange_ranges(int norm) const { return exchange_ranges_[index_of(norm)]; }
  /// The `half` of a part of the exchange area, 0 or 1: sum or squares, dbeta or dgamma.
  BufferRef exchanged(const Range& range, Index half) const {
    return {BufferRef::Base::gradients, -1, 4 * (range.begin + half * range.count / 2)};
  }

  /// Appends a step; its run is captured by value.
  Step& add_step(std::string what, std::vector<NodeId> nodes, const std::vector<BufferRef>& reads,
                 const std::vector<BufferRef>& writes, std::function<void(const LaunchContext&)> run);
  Step& add_graph(GraphCall call);
  /// Counters where the blocks of a step meet: the number of the first.
  Index add_arrivals(Index count) { return std::exchange(execution_.arrivals, execution_.arrivals + count); }
  ReductionRefs add_reduction(Index rows, Index channels, int terms) {
    const ReductionSpace space(rows, channels, terms);
    return {place(add_buffer(BufferKind::channels, space.doubles * 8)), add_arrivals(space.arrivals)};
  }
  /// The step that was appended last has made the gradient of a filter, as its convolution makes it.
  void finish_filter(int row, BufferRef gradient) {
    collector_.add(row, gradient);
    finish_row(row);
  }
  /// The row's gradient is complete with the step that was appended last.
  void finish_row(int row) { final_rows_.push_back({steps(), row}); }
  /// The next step needs the sum over all ranks of this range of the gradient block.
  void exchange(Range range) { exchanges_.push_back({steps(), range}); }
  void enter(Section section) { section_ = section; }
  /// Steps from `begin` on serve this value (Step::serves), unless they serve another.
  void tag(std::size_t begin, int value);
  std::size_t steps() const { return execution_.steps.size(); }
  Step& step(int index) { return execution_.steps[index_of(index)]; }

  ExecutionPlan& execution() { return execution_; }
  /// Stages, gaps, what runs beside the row and lifetimes, when all steps are there.
  ExecutionPlan finish(Streams streams);

 private:
  std::vector<lowering::Stage> make_stages() const;
  void add_access(Step& step, const BufferRef& place, Access access) const;

  const ExecutionSpec& spec_;
  const Lowering& lowering_;
  ExecutionPlan execution_;
  Section section_ = Section::forward;
  const std::vector<Shape> shapes_;
  std::vector<int> norm_buffers_;
  const std::vector<lowering::ExchangeRanges> exchange_ranges_;
  std::vector<lowering::FinalRow> final_rows_;
  std::vector<lowering::Exchange> exchanges_;
  GradientCollector collector_;
};

}  // namespace convoy::cuda
