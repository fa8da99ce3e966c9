// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "backend/cuda/lowering/forward_pass.hpp"

namespace convoy::cuda {

/// Complete sums of gradients over the batch, `channels` floats each.
struct NormSums {
  int norm = 0;
  BufferRef dbeta, products;
  Products kind = Products::centred;
};

/// Writes the steps of the backward pass, last value first (operations/operations.hpp). What is complete of a value's
/// gradient are tensors whose sum it is, one from each reader. A group's gradient is taken through its activation and
/// handed on to its terms.
class BackwardPass {
 public:
  explicit BackwardPass(const ForwardPass& forward_pass);
  void run();

  PlanBuilder& builder;
  KernelSelector& selector;
  const ForwardPass& forward;

  bool wants_gradient(int value) const { return builder.value(value).wants_gradient; }
  /// The contributions to a value's gradient, added up until at most `most` are left. All must be there.
  std::vector<BufferRef> contributions(int value, std::size_t most);
  /// The whole gradient of a value as one tensor.
  BufferRef gradient(int value) { return contributions(value, 1).front(); }
  void contribute(int value, BufferRef gradient);
  /// How many tensors were contributed so far, and how many readers have yet to contribute.
  std::size_t contributed(int value) const { return gradients_[index_of(value)].contributions.size(); }
  int missing(int value) const { return gradients_[index_of(value)].missing; }
  /// The reader that is at work takes the value's gradient along: nothing will be contributed any more.
  void complete(int value) { gradients_[index_of(value)].missing = 0; }
  /// A convolution has made a norm's sums, normalised. The step that applies the norm's gradient takes them; a launch
  /// of its own finishes those that nothing took.
  void await_gradients(const NormSums& sums) { waiting_.push_back(sums); }
  std::optional<NormSums> take_gradients(int norm);
  std::vector<NormSums> take_waiting() { return std::exchange(waiting_, {}); }
  /// The terms of the group have their gradients.
  void finish(int value) { gradients_[index_of(value)].finished = true; }

 private:
  struct Gradient {
    std::vector<BufferRef> contributions;
    int missing = 0;  ///< readers that have yet to contribute
    bool finished = false;
  };
  std::vector<Gradient> gradients_;
  std::vector<NormSums> waiting_;
};

}  // namespace convoy::cuda
