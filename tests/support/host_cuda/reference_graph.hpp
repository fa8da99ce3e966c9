// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/graphs/library.hpp"

namespace convoy::cuda {

/// What a graph says, computed in double from host-readable memory and rounded where it is stored. Tensors that a
/// tensor core reads are rounded to the storage first, as there.
void run_form(const ConvolutionGraph& graph, const Pointers& pointers);

}  // namespace convoy::cuda
