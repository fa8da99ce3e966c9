// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes: the parts of a program with what they cost, and what the device can do at best.
#pragma once
#include <string>

#include "core/types.hpp"

namespace convoy {

/// A part of a program, in order of execution: a pass over the batch on a CPU, a launch on a GPU.
struct ProgramPart {
  bool backward = false;
  bool again = false;   ///< forward work that runs a second time, within backward
  std::string nodes;    ///< whose work it is
  std::string kernels;  ///< what computes it
  /// FLOP of convolutions and linear layers by the direct algorithm, 2 for a multiply-add.
  double flops = 0;
  /// Activations, their gradients, weights and the weights' gradients, each once if the part reads or writes it.
  double bytes = 0;
};

/// What a device reaches on simple work, as measured.
struct Ceilings {
  double flops_per_second = 0;  ///< of a 1x1 convolution with 512 channels, 28 x 28 pixels
  double bytes_per_second = 0;  ///< of a copy: bytes read and bytes written
};

struct CeilingSpec {
  Precision precision = Precision::fp32;
  Index images = 0;                       ///< of the convolution; 0: enough for the device
  Index copied_bytes = Index{128} << 20;  ///< more than caches hold
};

}  // namespace convoy
