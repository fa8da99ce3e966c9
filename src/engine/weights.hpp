// SPDX-License-Identifier: Apache-2.0
// The weights of a trained network as users name them: a checkpoint, or a file of tensors that another program wrote.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/resume.hpp"
#include "interchange/fit.hpp"
#include "interchange/tensor_file.hpp"

namespace convoy {

/// A file of tensors has a meta part if Convoy exported it; else the meta part is empty.
struct FoundWeights : FoundCheckpoint {
  std::optional<TensorFormat> format;  ///< nothing: a checkpoint
  /// The file names the network, its classes and how images become input.
  bool tells() const { return !file.model.empty(); }
};

/// Collective. As rank 0 sees it: a file, or the best (else the newest) checkpoint of a run directory. Throws
/// Error(data), the same on all ranks.
FoundWeights open_weights(Communicator& communicator, const std::string& path);

struct LoadedWeights {
  std::vector<float> block;               ///< in the layout; optimiser and device state are zero
  std::vector<std::string> unread;        ///< tensors of heads that weren't read, as StoredTensor::name
  Library origin = Library::torchvision;  ///< whose names a file of tensors has
};

/// Throws Error(data) if the choice asks for a moving average that the file doesn't have.
void require_choice(const std::string& path, const CheckpointMeta& meta, WeightChoice choice);

/// `moving average`, `slow` (those of lookahead), `averaged` (by 'convoy average') or `trained`: the weights that are
/// taken from a checkpoint.
std::string name_of_weights(const CheckpointMeta& meta, WeightChoice choice);

/// Collective. Rank 0 reads, all get the values; the log says what was loaded. Throws Error(data), the same on all
/// ranks.
LoadedWeights load_weights(Communicator& communicator, const FoundWeights& found, const Plan& plan,
                           const SetLayout& layout, Head head, WeightChoice choice = WeightChoice::usual);

}  // namespace convoy
