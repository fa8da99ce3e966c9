// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Of values and running statistics. `block`: a set.
std::uint64_t digest_of(const std::vector<float>& block, const SetLayout& layout);

/// Compares digests of the weights between ranks and replicas, where they have to be the same (--check-weights).
class WeightCheck final : public Observer {
 public:
  explicit WeightCheck(TrainingJob& job) : job_(job) {}
  void step_done(LoopState& state) override;

 private:
  TrainingJob& job_;
};

}  // namespace convoy
