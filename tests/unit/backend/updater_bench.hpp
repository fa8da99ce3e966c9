// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/updater.hpp"
#include "support/reference/operations.hpp"

namespace convoy::cpu {

/// Parameters, gradients and state of a plan on the host.
class UpdaterBench {
 public:
  UpdaterBench(Plan plan, const OptimiserSpec& spec) : plan_(std::move(plan)), layout_(set_layout(plan_.table, spec)) {
    block_.assign(static_cast<std::size_t>(layout_.count()), 0.0F);
    gradients_.assign(static_cast<std::size_t>(plan_.table.block()), 0.0F);
    updater_ = make_updater(plan_, spec, step_, counters_);
    arena_.assign(static_cast<std::size_t>(updater_->arena_floats() + 16), std::numeric_limits<float>::quiet_NaN());
    // On 64 bytes, as a backend's memory is.
    std::size_t space = arena_.size() * sizeof(float);
    void* start = arena_.data();
    updater_->bind(static_cast<float*>(std::align(64, 0, start, space)));
  }
  void step(float learning_rate, const OptionValues& options) {
    step_.learning_rate = learning_rate;
    step_.options = options;
    updater_->launch({block_.data(), layout_.count()}, gradients_.data());
  }
  void set(std::vector<float>& block, Range range, const reference::Values& values) {
    std::copy(values.begin(), values.end(), block.begin() + range.begin);
  }
  reference::Values values(Range range) const {
    return {block_.begin() + layout_.values.begin + range.begin, block_.begin() + layout_.values.begin + range.end()};
  }
  const DeviceState& state() { return *layout_.device_state(block_.data()); }

  Plan plan_;
  SetLayout layout_;
  std::vector<float> block_, gradients_, arena_;
  StepParams step_;
  Counters counters_;
  std::unique_ptr<Updater> updater_;
};

}  // namespace convoy::cpu
