// SPDX-License-Identifier: Apache-2.0
// One builder a family; models.cpp chooses by name. All throw Error(usage) for a variant that the family doesn't have.
#pragma once
#include <cstdint>

#include "network/graph.hpp"
#include "network/models.hpp"

namespace convoy {

/// flatten, then hidden layers with the activation (ReLU), then the classes.
Graph build_mlp(const GraphSpec& spec);

/// LeCun et al. 1998 in the form of the MNIST examples of Caffe and MXNet: 20 and 50 maps of 5x5, each with activation
/// (tanh) and 2x2 pooling (max), 500 hidden values.
Graph build_lenet(const GraphSpec& spec);

/// Krizhevsky et al. 2012 and two later forms (`variant`): 2012 with local response normalisation and two groups, ray
/// with one and dense layers with tanh, owt as in torchvision.
Graph build_alexnet(const GraphSpec& spec);

enum class BlockKind : std::uint8_t { basic, bottleneck };

/// He et al. 2015 for ImageNet: 18 and 34 with basic blocks, 50, 101 and 152 with bottlenecks.
Graph build_resnet(const GraphSpec& spec, int depth);

/// He et al. 2015 and 2016 for 32x32 images: three stages of n blocks, depth 6n+2 (basic) or 9n+2 (bottleneck).
Graph build_resnet_cifar(const GraphSpec& spec, int depth, BlockKind kind);

}  // namespace convoy
