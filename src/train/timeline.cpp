// SPDX-License-Identifier: Apache-2.0
#include "train/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/errors.hpp"

namespace convoy {

Timeline::Timeline(std::vector<Stretch> stretches) : stretches_(std::move(stretches)) {
  require(!stretches_.empty() && stretches_.front().begin_epoch == 0, "a timeline begins at epoch 0");
}

std::size_t Timeline::stretch(Index epoch) const {
  std::size_t i = 0;
  while (i + 1 < stretches_.size() && stretches_[i + 1].begin_epoch <= epoch) ++i;
  return i;
}

Index Timeline::first_step(Index epoch) const {
  Index step = 0;
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Index end = i + 1 < stretches_.size() ? std::min(stretches_[i + 1].begin_epoch, epoch) : epoch;
    step += std::max<Index>(end - stretches_[i].begin_epoch, 0) * stretches_[i].steps_per_epoch;
  }
  return step;
}

Index Timeline::epoch_of(Index step) const {
  for (std::size_t i = 0;; ++i) {
    const Stretch& s = stretches_[i];
    const Index begin = first_step(s.begin_epoch);
    if (i + 1 < stretches_.size() && step >= first_step(stretches_[i + 1].begin_epoch)) continue;
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
  if (stretches_.size() == 1) return static_cast<double>(step);
  return epochs(step) * static_cast<double>(stretches_.front().steps_per_epoch);
}

}  // namespace convoy
