// SPDX-License-Identifier: Apache-2.0
// The tensors of a network by the names that PyTorch's libraries give them. Convoy's own names and layouts (convolution
// k c r s, linear k c) are torchvision's; a state dict only adds the counters of batch norms.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "interchange/tensor_file.hpp"
#include "network/plan.hpp"

namespace convoy {

/// One entry of a state dict. `range`: of the values or of the statistics block of a parameter set.
struct StateEntry {
  enum class Part : std::uint8_t { values, statistics, batches };
  std::string name;  ///< `layer1.0.bn1.running_var`
  std::vector<Index> extent;
  Part part = Part::values;
  Range range;      ///< none for batches
  NodeId node = 0;  ///< that owns it
};

/// All entries, node by node as the network was built: parameters, then running_mean, running_var and
/// num_batches_tracked of a batch norm.
std::vector<StateEntry> state_dict_of(const Plan& plan);

/// The state dict with its values, to be written. `values`, `statistics`: those blocks of a set. `batches`:
/// num_batches_tracked of every batch norm (steps done).
std::vector<NamedTensor> state_dict_values(const Plan& plan, std::span<const float> values,
                                           std::span<const float> statistics, Index batches);

/// Modules to which timm gives another name than torchvision, by torchvision's: `features.0.0` -> `conv_stem`.
using NameMap = std::map<std::string, std::string>;
NameMap timm_modules(const Graph& graph);

/// Of names, shapes and values in state-dict order: the same weights have the same digest in every file format.
std::uint64_t digest_of_state(const std::vector<NamedTensor>& tensors);
/// The same, one tensor after another; 0 before the first.
std::uint64_t digest_of_tensor(const NamedTensor& tensor, std::uint64_t digest);

}  // namespace convoy
