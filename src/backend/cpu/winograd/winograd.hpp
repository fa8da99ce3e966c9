// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

/// Whether there is a kernel: 3x3, one group, any number of channels, not the plain image; stride 1, or in fp32 stride
/// 2 with a border of one pixel.
bool winograd_fits(const ConvolutionShape& shape);
/// Tiles that a thread takes in a round: a multiple of both kernels' 6 and 12, and no power of two for the caches'
/// sake. Each round reads all filters, so layers with 512 channels and more take 120 tiles, and others 60. From 256 to
/// 511 channels forward and the data gradient take 36, so that the transformed tiles stay in the caches; the weight
/// gradient takes 60, since each round also reads and writes its sum. With stride 2 a tile has 81 points: 24 tiles,
/// or 60.
Index winograd_round_tiles(const ConvolutionShape& shape, Direction direction);
/// The most scratch memory of a kernel, over all threads that execute it. If they would need more, each takes fewer
/// tiles in a round, but never fewer than 24.
constexpr Index winograd_scratch_bytes = Index{512} << 20;
/// F(4x4, 3x3), or its like with stride 2, for a shape that fits, on any instruction set. Transformations compute in
/// fp32; products too, but for Algorithm::winograd_bf16 where the machine has AVX512_BF16.
std::unique_ptr<ConvolutionKernel> make_winograd(Isa isa, const ConvolutionSpec& spec);

}  // namespace convoy::cpu
