// SPDX-License-Identifier: Apache-2.0
// Every cuDNN graph in use as plain data: one convolution and what is fused to it. A graph says what is computed; how,
// a Library decides (graphs/library.hpp). Spatial tensors are NHWC, filters KRSC, both packed.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/precision.hpp"

namespace convoy::cuda {

enum class Pass : std::uint8_t { forward, data_gradient, weight_gradient };

/// What stands between the convolution and the tensor in memory: in front of x (forward, weight gradient) as a
/// prologue, or behind dx (data gradient) as its derivative, with the sums that the batch norms' gradients need.
///   norm        z = relu(bn(x))
///   join        z = relu(bn(x) + other)
///   join_norms  z = relu(bn(x) + bn2(other))
enum class Fusion : std::uint8_t { none, norm, join, join_norms };
inline bool joins(Fusion fusion) { return fusion == Fusion::join || fusion == Fusion::join_norms; }

/// Tensors of a graph.
enum class Role : std::uint8_t {
  x,    ///< n h w c: the convolution's input, or the batch norm's where there is a fusion
  w,    ///< k r s c/groups
  y,    ///< n p q k
  dy,   ///< shaped as y
  dx,   ///< the data gradient, shaped as x; with a fusion times relu'(z)
  dw,   ///< shaped as w
  sum,  ///< k floats: of y, as it is stored
  squares,
  other,  ///< the second term of a join, shaped as x
  z,      ///< a forward join writes it; shaped as x
  add,    ///< is added to the data gradient before the mask; shaped as x
  scale,
  shift,
  scale2,
  shift2,  ///< c each, of the prologue, in the precision's storage
  mean,
  rstd,
  gamma,
  beta,  ///< c floats, of the mask
  mean2,
  rstd2,
  gamma2,
  beta2,
  dgamma,
  dbeta,
  a,
  b,
  d,  ///< c floats: sum g * xhat, sum g; bn's dx = a * g + b * x + d
  dgamma2,
  dbeta2,
  a2,
  b2,
  d2,
};
inline constexpr std::size_t role_count = static_cast<std::size_t>(Role::d2) + 1;

/// y[n,p,q,k] = sum w[k,r,s,c] z[n, p*stride - pad + r, q*stride - pad + s, c], z as the fusion makes it of x.
struct ConvolutionGraph {
  Pass pass = Pass::forward;
  Precision precision = Precision::fp32;  ///< fp32 and tf32 store floats; sums are in fp32
  Fusion fusion = Fusion::none;
  bool statistics = false;  ///< forward: sum and squares too
  bool adds = false;        ///< data gradient: dx + add before the mask
  Index n = 0, c = 0, h = 0, w = 0, k = 0;
  Index r = 1, s = 1, pad = 0, pad_w = 0, stride = 1, groups = 1;

  Index p() const { return (h + 2 * pad - r) / stride + 1; }
  Index q() const { return (w + 2 * pad_w - s) / stride + 1; }
  // NOLINTNEXTLINE(modernize-use-nullptr): as in checkpoint/fence.hpp
  auto operator<=>(const ConvolutionGraph&) const = default;
};

enum class Access : std::uint8_t { read, write };

struct Operand {
  Role role{};
  Access access = Access::read;
  std::array<Index, 4> dims{};  ///< n c h w, k c r s, or 1 c 1 1; stored with c innermost
  bool is_float = false;        ///< fp32 whatever the precision
  Index count() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
};

/// The operands of a graph, in a fixed order.
std::vector<Operand> operands_of(const ConvolutionGraph& graph);

/// 2 for each multiply-add of the convolution.
double flops_of(const ConvolutionGraph& graph);

/// Bytes of an element of activations and filter copies.
constexpr Index storage_bytes(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::tf32 ? 4 : 2;
}

/// `forward [join] +stats fp16 n256 64x56x56 -> 256 1x1 s1 p0 g1`: also the key of caches and choices.
std::string describe(const ConvolutionGraph& graph);
/// Its first half: `forward [join] +statistics`.
std::string describe_fusion(const ConvolutionGraph& graph);

}  // namespace convoy::cuda
