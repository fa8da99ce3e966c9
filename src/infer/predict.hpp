// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace convoy {

/// Collective. The whole of `convoy predict`: the likeliest classes of image files, or of the samples of a data set,
/// the same text for any number of ranks. ok; data where no image could be read.
Exit predict(Communicator& communicator, const PredictConfig& config);

}  // namespace convoy
