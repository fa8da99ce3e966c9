// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "backend/cuda/lowering/assembler.hpp"
#include "backend/cuda/lowering/chooser.hpp"

namespace convoy::cuda {

/// Where the forward pass left what the backward pass reads, by value.
struct ForwardTensors {
  std::vector<Place> values;   ///< none: never stored
  std::vector<Place> winners;  ///< of max pooling
  std::vector<int> applies;    ///< of groups that a kernel of ours made: its step; -1: none
  /// Of those groups: where the step also writes a mask, if anywhere. Filled in by whoever reads it.
  std::vector<std::shared_ptr<Place>> masks;
  Place dlogits;
};

/// Writes the steps of the forward pass, loss included. Groups are evaluated where they are first read.
class Forward {
 public:
  Forward(Assembler& assembler, Chooser& chooser);
  void run();
  const ForwardTensors& tensors() const { return tensors_; }

 private:
  void input();
  void evaluation_norms();
  void convolution(int id);
  void pool(int id);
  void global_pool(int id);
  void local_response(int id);
  void dropout(int id);
  void repack(int id);
  void loss(int id);
  /// The value in memory; a group is applied now if it wasn't.
  Place ensure(int id);
  Place apply(int id);
  void reduce_statistics(int id);
  /// What follows the sums of a value: its norms' vectors. Sums: [parts][2][channels] from `sums` on.
  void finish_norms(int id, Place sums, Place squares, Index parts, Index stride);
  bool needs_statistics(int id) const;

  Assembler& a_;
  Chooser& chooser_;
  ForwardTensors tensors_;
};

}  // namespace convoy::cuda
