// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/augment.hpp"
#include "data/dataset.hpp"
#include "network/plan.hpp"

namespace convoy {

/// Collective. Gives first convolutions that start so (Initialiser::Fill::whitening) their filters, from images spread
/// evenly over the training set, as evaluation shows them. `starts_anew`: whether a parameter has no other values yet;
/// if none does, no image is read. `values`: the plan's block of parameters. Rank 0 computes them in a fixed order, so
/// they depend on neither the number of ranks nor the seed. Throws AgreedError.
void whiten_first_layers(Communicator& communicator, const DataConfig& config, const DatasetInfo& train,
                         const AugmentSpec& augment, const Plan& plan,
                         const std::function<bool(const Parameter&)>& starts_anew, float* values);

/// Means of the products of the values of all patches c r s of `count` images (c h w each), c*r*s squared numbers.
std::vector<double> patch_moments(const std::vector<float>& images, Index count, const Shape& image, Index r, Index s);

}  // namespace convoy
