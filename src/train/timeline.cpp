// SPDX-License-Identifier: Apache-2.0
#include "train/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/errors.hpp"

namespace convoy {

Timeline::Timeline(std::vector<PhaseSteps> phases) : phases_(std::move(phases)) {
  require(!phases_.empty() && phases_.front().begin_epoch == 0, "a timeline begins at epoch 0");
}

std::size_t Timeline::phase(Index epoch) const {
  std::size_t i = 0;
  while (i + 1 < phases_.size() && phases_[i + 1].begin_epoch <= epoch) ++i;
  return i;
}

Index Timeline::first_step(Index epoch) const {
  Index step = 0;
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Index end = i + 1 < phases_.size() ? std::min(phases_[i + 1].begin_epoch, epoch) : epoch;
    step += std::max<Index>(end - phases_[i].begin_epoch, 0) * phases_[i].steps_per_epoch;
  }
  return step;
}

Index Timeline::epoch_of(Index step) const {
  for (std::size_t i = 0;; ++i) {
    const PhaseSteps& s = phases_[i];
    const Index begin = first_step(s.begin_epoch);
    if (i + 1 < phases_.size() && step >= first_step(phases_[i + 1].begin_epoch)) continue;
    return s.begin_epoch + (step - begin) / s.steps_per_epoch;
  }
}

double Timeline::epochs(Index step) const {
  const Index epoch = epoch_of(step);
  return static_cast<double>(epoch) + static_cast<double>(step - first_step(epoch)) / static_cast<double>(steps(epoch));
}

Index Timeline::step(double epochs) const {
  const auto whole = static_cast<Index>(std::floor(epochs));
  const double part = epochs - static_cast<double>(whole);
  return first_step(whole) + static_cast<Index>(std::llround(part * static_cast<double>(steps(whole))));
}

double Timeline::even_step(Index step) const {
  if (phases_.size() == 1) return static_cast<double>(step);
  return epochs(step) * static_cast<double>(phases_.front().steps_per_epoch);
}

bool Timeline::is_due(double every, Index step) const {
  if (every <= 0 || step == 0) return false;
  constexpr double slack = 1e-9;
  return std::floor(epochs(step) / every + slack) > std::floor(epochs(step - 1) / every + slack);
}

}  // namespace convoy
