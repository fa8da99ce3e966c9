// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cuda/lowering/kernel_selector.hpp"
#include "backend/cuda/lowering/plan_builder.hpp"

namespace convoy::cuda {

/// What the forward pass left of a value for the backward pass.
struct ForwardTensor {
  BufferRef value;    ///< none: the value is never stored
  BufferRef argmax;   ///< max pooling: which element of its window each output is
  BufferRef dlogits;  ///< loss: the gradient of its logits; none where nothing is trained
  /// Groups that a kernel of ours evaluated: the step, and where it also writes a mask, if anywhere. The backward pass
  /// fills the reference in when it wants one.
  int step = -1;
  std::shared_ptr<BufferRef> mask;
};

/// Writes the steps of the forward pass, loss included, an operation after the other (operations/operations.hpp).
class ForwardPass {
 public:
  ForwardPass(PlanBuilder& builder, KernelSelector& selector);
  void run();

  PlanBuilder& builder;
  KernelSelector& selector;

  ForwardTensor& tensor(int value) { return tensors_[index_of(value)]; }
  const ForwardTensor& tensor(int value) const { return tensors_[index_of(value)]; }
  bool is_stored(int value) const { return static_cast<bool>(tensor(value).value); }
  /// The value in memory. A group is evaluated when it is first read.
  BufferRef read(int value);
  /// A new tensor for the value.
  BufferRef make(int value) { return tensor(value).value = builder.add_tensor(value); }
  /// Whether a batch norm normalises the value by the statistics of the batch.
  bool needs_statistics(int value) const;

  /// The sums of a norm are complete, but its vectors are not made yet.
  struct WaitingNorm {
    std::vector<BufferRef> reads;
    std::function<NormFinish(const LaunchContext&)> finish;
  };
  void await_norm(int norm, WaitingNorm waiting) { waiting_[norm] = std::move(waiting); }
  /// Before a step that reads their vectors: those that wait get them, by one launch where the two branches of a join
  /// do.
  void settle(std::vector<int> norms);
  /// What a step that finishes the norm itself wants; nothing if it does not wait.
  std::optional<WaitingNorm> take_waiting(int norm) {
    auto taken = waiting_.extract(norm);
    return taken.empty() ? std::nullopt : std::optional(std::move(taken.mapped()));
  }

 private:
  std::vector<ForwardTensor> tensors_;
  std::map<int, WaitingNorm> waiting_;
};

}  // namespace convoy::cuda
