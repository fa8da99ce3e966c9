// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/options.hpp"
#include "core/errors.hpp"
#include "scaling/machine.hpp"

namespace convoy {

/// What the description of a machine keeps of these options beside a step's time.
inline StepConditions conditions_of(DeviceConfig device) {
  const OptionGroup group = training_device_options(device);
  const auto printed = [&](const std::string& name) {
    for (const Option& option : group.options)
      if (option.name == name) return option.print();
    fail(Exit::internal, "no option --{} of the device", name);
  };
  return {.recompute = printed("recompute"), .kernels = printed("kernels"), .tuning = printed("tuning")};
}

}  // namespace convoy
