// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/config.hpp"
#include "core/errors.hpp"

namespace convoy {

/// Writes a page that shows some training images as the network sees them in several epochs.
Exit preview(const PreviewConfig& config);

}  // namespace convoy
