// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/config.hpp"
#include "core/errors.hpp"

namespace convoy {

/// Writes a page that shows what the network sees of some training images in several epochs.
Exit preview(const PreviewConfig& config);

}  // namespace convoy
