// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "backend/cuda/lowering/assembler.hpp"
#include "backend/cuda/lowering/chooser.hpp"
#include "backend/cuda/lowering/forward.hpp"

namespace convoy::cuda {

/// Writes the steps of the backward pass, last value first. What is complete of a value's gradient are tensors whose
/// sum it is; a group's is taken through its curve and handed on to its terms.
class Backward {
 public:
  Backward(Assembler& assembler, Chooser& chooser, const ForwardTensors& tensors);
  void run();

 private:
  void convolution(int id);
  void weight_gradient(int id, Place dy);
  void data_gradient(int id, Place dy);
  void pool(int id);
  /// Of a max pool that computed norm and curve of its source on the fly: through all three.
  void pooled_norm(int id);
  void global_pool(int id);
  void local_response(int id);
  void dropout(int id);
  void repack(int id);
  void logits(int id);
  /// Own kernels: from the contributions to a group's output to those of its terms.
  void group(int id);
  /// A group whose gradient before the curve lies in `g` and whose norms' sums are complete.
  void hand_on(int id, Place g);
  void bias_gradient(int row, Place g, int id);

  /// How a kernel of ours gets g of a group: from which tensors, and how the curve's derivative is known.
  struct Gradient {
    std::vector<Place> reads;  ///< besides x and other
    Place dz, more, z, mask, scale, shift, scale2, shift2;
    Activating act;
    MaskedGradient at(const Frame& frame) const;
  };
  /// `reads_terms`: x and other are read by the kernel anyway.
  Gradient gradient_of(int id, bool reads_terms);
  static Gradient stored_gradient(Place g);
  Place mask_of(int id);
  /// The contributions to a value's gradient, added up until at most `most` are left.
  std::vector<Place> contributions(int id, std::size_t most);
  void contribute(int id, Place gradient);

  void reduce(int id, const Gradient& from, Place g);
  /// Sums over a batch -> gradients of scale and shift, and the vectors of the norm's own gradient.
  struct Sums {
    Place dbeta, products;
    Index parts = 1, stride = 0;
    Products kind = Products::centred;
  };
  void finish_norms(const std::vector<std::pair<int, Sums>>& norms);
  void apply(int id, const Gradient& from);

  Assembler& a_;
  Chooser& chooser_;
  const ForwardTensors& tensors_;
  std::vector<std::vector<Place>> contributions_;
  std::vector<bool> done_;    ///< groups whose terms have their share
  std::vector<int> missing_;  ///< readers whose share is still to come
};

}  // namespace convoy::cuda
