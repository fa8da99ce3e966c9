// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "config/class_weights.hpp"
#include "data/dataset.hpp"

namespace convoy {

/// Images of each class. Labels of no class (-1) are left out.
std::vector<Index> count_classes(std::span<const std::int32_t> labels, Index classes);

/// The factors that the loss takes, scaled so that their mean over the images of the training set is 1:
///   sum counts[k] * w[k] = sum counts[k]
/// So a step divides by its number of images, on any number of ranks. (torch's CrossEntropyLoss(weight=) divides by
/// the sum of the weights in the batch, which is the same on average.) A class without images has 0 if they are
/// automatic. Throws Error(usage) if they don't fit the set.
std::vector<float> loss_weights(const ClassWeights& wanted, std::span<const Index> counts, const DatasetInfo& info);

}  // namespace convoy
