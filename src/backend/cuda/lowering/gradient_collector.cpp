// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/gradient_collector.hpp"

#include <algorithm>
#include <utility>

#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

Range overlap(const Range& a, const Range& b) {
  const Index begin = std::max(a.begin, b.begin), end = std::min(a.end(), b.end());
  return {begin, std::max<Index>(end - begin, 0)};
}

bool contains(const Range& range, Index at) { return at >= range.begin && at < range.end(); }

}  // namespace

void GradientCollector::cut_range(ExecutionPlan& execution, const Range& range, Index from) {
  for (Index begin = range.begin; begin < range.end(); begin += piece_elements) {
    GradientPiece piece{.begin = begin, .from = from};
    piece.channels = static_cast<std::int32_t>(std::min<Index>(piece_elements, range.end() - begin));
    execution.pieces.push_back(piece);
    sources_.emplace_back();
  }
}

std::vector<int> GradientCollector::cut(ExecutionPlan& execution, const Plan& plan, const CopyLayout& copies,
                                        const Range& range) {
  std::vector<int> buffers;
  std::vector<Range> done;  // what filters and gaps cover; the rest was written as floats
  for (const Filter& filter : filters_) {
    const Range& row = plan.table.rows[index_of(filter.row)].range;
    if (!contains(range, row.begin)) continue;
    const FilterCopy& copy = copies.rows[index_of(filter.row)];
    for (const UpdatePiece& cut : copies.pieces) {
      if (!contains(row, cut.begin)) continue;
      execution.pieces.push_back({.begin = cut.begin,
                                  .from = (cut.copy - copy.offset) * bytes_of(copies.storage),
                                  .ks = cut.ks,
                                  .channels = cut.channels,
                                  .rs = cut.rs,
                                  .stored_c = cut.stored_c});
      sources_.push_back(filter.gradient);
    }
    buffers.push_back(filter.gradient.buffer);
    done.push_back(row);
  }
  for (const Range& gap : execution.gaps) {
    const Range here = overlap(gap, range);
    if (here.count == 0) continue;
    cut_range(execution, here, GradientPiece::unwritten);
    done.push_back(here);
  }
  std::sort(done.begin(), done.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Index at = range.begin;
  for (const Range& covered : done) {
    cut_range(execution, {at, covered.begin - at}, GradientPiece::written);
    at = std::max(at, covered.end());
  }
  cut_range(execution, {at, range.end() - at}, GradientPiece::written);
  return buffers;
}

void GradientCollector::insert_steps(ExecutionPlan& execution, const Plan& plan, const CopyLayout& copies,
                                     Index arrivals) {
  const Range flags = plan.table.flags;
  std::vector<Range> of_exchange;
  for (Range& gap : execution.gaps) {
    const Range exchanged = overlap(gap, {flags.end(), plan.table.block() - flags.end()});
    if (exchanged.count == 0) continue;
    of_exchange.push_back(exchanged);
    gap.count -= exchanged.count;
  }
  std::vector<Step> steps;
  std::size_t begin = 0;
  for (std::size_t stage = 0; stage < execution.stages.size(); ++stage) {
    lowering::Stage& at = execution.stages[stage];
    std::move(execution.steps.begin() + static_cast<std::ptrdiff_t>(begin),
              execution.steps.begin() + static_cast<std::ptrdiff_t>(at.end), std::back_inserter(steps));
    begin = at.end;
    const std::size_t first = execution.pieces.size();
    const std::vector<int> buffers = cut(execution, plan, copies, at.ready.range);
    if (const std::size_t count = execution.pieces.size() - first; count > 0) {
      Step step{.what = "gradients of a stage", .section = Section::backward};
      for (const int buffer : buffers) step.accesses.push_back({buffer, Access::read});
      for (const Parameter& row : plan.table.rows)
        if (contains(at.ready.range, row.range.begin)) step.nodes.push_back(row.node);
      if (step.nodes.empty()) step.nodes.push_back(static_cast<NodeId>(plan.graph.nodes.size()) - 1);  // flags alone
      const bool last = at.ready.range.end() == flags.end();
      GradientCollection collection{.storage = copies.storage, .count = static_cast<int>(count)};
      collection.stage = static_cast<std::int32_t>(stage);
      step.run = [=](const LaunchContext& launch) {
        if (launch.pieces == nullptr) return;  // kernels are measured without a table
        GradientCollection now = collection;
        now.arena = launch.arena;
        now.pieces = launch.pieces + first;
        now.gradients = launch.gradients;
        now.loss_scale = launch.loss_scale;
        now.worst = launch.worst;
        now.flags = last ? launch.gradients + flags.begin : nullptr;
        now.feed = launch.feed;
        now.arrivals = launch.arrivals + arrivals;
        check(collect_gradients(now, launch.stream), "the gradients of a stage");
      };
      for (std::size_t i = first; i < first + count; ++i) {
        const GradientPiece& piece = execution.pieces[i];
        const Index elements = Index{piece.ks} * piece.channels * piece.rs;
        step.other_bytes += elements * (piece.from >= 0 ? 4 + bytes_of(copies.storage) : 4);
      }
      steps.push_back(std::move(step));
    }
    at.end = steps.size();
  }
  execution.steps = std::move(steps);
  execution.gaps = std::move(of_exchange);
}

void GradientCollector::place_pieces(ExecutionPlan& execution) const {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i]) continue;
    execution.pieces[i].from += execution.placement.offsets[index_of(sources_[i].buffer)] + sources_[i].offset;
  }
}

}  // namespace convoy::cuda
