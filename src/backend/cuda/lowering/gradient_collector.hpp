// SPDX-License-Identifier: Apache-2.0
// The last step of each stage: one kernel that brings the stage's part of the gradient block into the form that sums
// and the update expect (kernels/gradients.hpp).
#pragma once
#include <vector>

#include "backend/cuda/lowering/execution_plan.hpp"

namespace convoy::cuda {

class GradientCollector {
 public:
  /// A step has left the gradient of a filter as its convolution made it: KRSC in storage, as its copy lies.
  void add(int row, BufferRef gradient) { filters_.push_back({row, gradient}); }

  /// Ends each stage that gives gradients away with a step that collects them. `gaps`: what no step writes. Those of
  /// the exchange area stay, since they must be zero before kernels write beside them. `arrivals`: one counter.
  void insert_steps(ExecutionPlan& execution, const Plan& plan, const CopyLayout& copies, Index arrivals);
  /// When the buffers have their places: where the pieces lie.
  void place_pieces(ExecutionPlan& execution) const;

 private:
  struct Filter {
    int row = 0;
    BufferRef gradient;
  };
  /// Pieces of the stage; returns the buffers of its filters.
  std::vector<int> cut(ExecutionPlan& execution, const Plan& plan, const CopyLayout& copies, const Range& range);
  void cut_range(ExecutionPlan& execution, const Range& range, Index from);

  std::vector<Filter> filters_;
  std::vector<BufferRef> sources_;  ///< of each piece; none: no filter
};

}  // namespace convoy::cuda
