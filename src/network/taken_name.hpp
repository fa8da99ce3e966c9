// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/models.hpp"

namespace convoy {

/// Whether a network of a file has the name of one of Convoy's and isn't it: their plans differ for the classes and the
/// images of `spec`.
bool has_taken_name(const GraphSpec& spec);

}  // namespace convoy
