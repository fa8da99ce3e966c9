// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "data/augment.hpp"
#include "data/dataset.hpp"

namespace convoy {

/// The images of an evaluation whose loss is largest.
class WorstImages {
 public:
  explicit WorstImages(Index classes) : classes_(classes) {}

  /// `samples`: position is the number in the split. `logits` [samples][classes], host memory.
  void add(std::span<const SampleSpec> samples, const float* logits);

  /// Collective. worst.json of all ranks' images, the worst first, the same for any number of ranks. `dataset`: this
  /// rank's share; `input`: of the network.
  std::string gather(Communicator& communicator, const Dataset& dataset, const AugmentSpec& augment,
                     const InputSpec& input) const;

 private:
  struct Entry {
    double loss = 0, probability = 0;  ///< of the predicted class
    Index sample = 0, label = 0, predicted = 0;
    bool worse_than(const Entry& other) const { return loss != other.loss ? loss > other.loss : sample < other.sample; }
  };
  /// Leaves the worst.
  static void keep_worst(std::vector<Entry>& entries);

  Index classes_;
  std::vector<Entry> entries_;
};

}  // namespace convoy
