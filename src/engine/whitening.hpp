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

/// Collective. Computes the filters of first convolutions that start by whitening (Initialiser::Fill::whitening) and
/// writes them into `values`, the plan's block of parameters. The images are spread evenly over the training set and
/// look as in evaluation. `starts_anew`: whether a parameter still needs its first values; if none of these does, no
/// image is read. Rank 0 computes in a fixed order, so the filters depend on neither the number of ranks nor the seed.
/// Throws AgreedError.
void whiten_first_layers(Communicator& communicator, const DataConfig& config, const DatasetInfo& train,
                         const AugmentSpec& augment, const Plan& plan,
                         const std::function<bool(const Parameter&)>& starts_anew, float* values);

/// Returns the means of the products of two values of a patch c r s, over all patches of `count` images (c h w each):
/// a matrix of side c*r*s.
std::vector<double> patch_moments(const std::vector<float>& images, Index count, const Shape& image, Index r, Index s);

}  // namespace convoy
