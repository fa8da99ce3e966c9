// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

/// Whether there is a kernel: 3x3, one group, any number of channels, not the plain image; stride 1, or in fp32 stride
/// 2 with a border of one pixel.
bool winograd_fits(const ConvolutionShape& shape);
/// Tiles that a thread takes in a round: a multiple of both kernels' 6 and 12, and no power of two for the caches'
/// sake. Each round reads all filters, so wide layers take more tiles. With 256 channels 36 tiles keep the points in
/// the caches; a weight gradient takes more, since it also reads and writes its sum in each round. With stride 2 a tile
/// has more points.
Index winograd_round_tiles(const ConvolutionShape& shape, Direction direction);
/// F(4x4, 3x3), or its like with stride 2, for a shape that fits, on any instruction set. Transformations compute in
/// fp32; products too, but for Algorithm::winograd_bf16 where the machine has AVX512_BF16.
std::unique_ptr<ConvolutionKernel> make_winograd(Isa isa, const ConvolutionSpec& spec);

}  // namespace convoy::cpu
