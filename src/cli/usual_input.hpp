// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/models.hpp"

namespace convoy {

/// The model for the input it is usually given, where classes, channels or image size are 0: ImageNet (1000 classes, 3
/// x 224 x 224) for ResNet 18, 34, 50, 101 and 152 with their large stem, MNIST for lenet and mlp, CIFAR-10 for the
/// others.
GraphSpec with_usual_input(GraphSpec model, Index classes, Index channels, Index image_size);

}  // namespace convoy
