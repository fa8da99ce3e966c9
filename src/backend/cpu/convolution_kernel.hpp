// SPDX-License-Identifier: Apache-2.0
// One direction of one convolution for a fixed number of images and threads, planned ahead, so that executing it
// allocates nothing of ours: a oneDNN primitive, our own Winograd, our own products over pixels, or our own sums for
// narrow groups.
#pragma once
#include <memory>
#include <string>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/tensor_layout.hpp"
#include "core/types.hpp"

namespace convoy::cpu {

/// MemoryFormat of spatial tensors: nChw16c, or nhwc.
enum class MemoryFormat : std::uint8_t { blocked, nhwc };
enum class Direction : std::uint8_t { forward, data, weights };
/// winograd_bf16: with products in bf16, for bf16 storage. gemm: our own products over pixels, for weight gradients.
enum class Algorithm : std::uint8_t { direct, winograd, grouped, winograd_bf16, gemm };

struct ConvolutionShape {
  Index images = 0, in = 0, out = 0, height = 0, width = 0;
  int kernel = 3, kernel_w = 3, stride = 1, pad = 1, pad_w = 1, groups = 1;
  bool bias = false;
  bool reads_plain = false;  ///< the source is n c h w
  MemoryFormat format = MemoryFormat::blocked;
  Storage storage = Storage::f32;

  /// Height and width of the result.
  Index p() const { return (height + 2 * pad - kernel) / stride + 1; }
  Index q() const { return (width + 2 * pad_w - kernel_w) / stride + 1; }
};

/// A tensor of such a convolution, as its kernels read and write it. `plain`: n c h w.
TensorLayout layout_of(const ConvolutionShape& shape, Index channels, Index height, Index width, bool plain = false);

/// The library's engine and one stream a thread.
class Onednn {
 public:
  explicit Onednn(int threads);
  ~Onednn();
  struct Handles;
  const Handles& handles() const { return *handles_; }

 private:
  std::unique_ptr<Handles> handles_;
};

struct ConvolutionSpec {
  ConvolutionShape shape;
  Direction direction = Direction::forward;
  Algorithm algorithm = Algorithm::direct;
  int threads = 1;  ///< threads that work on one execution
  int copies = 1;   ///< threads that may execute it at the same time
};

/// What one execution works on. `source` and `result` are x and y, or their gradients.
struct ConvolutionData {
  int copy = 0;
  const void *source = nullptr, *packed = nullptr;
  const float* bias = nullptr;
  const void* result = nullptr;
  void* scratch = nullptr;
  bool add = false;  ///< to `packed` and `bias`; only where the kernel adds()
};

class ConvolutionKernel {
 public:
  /// Direct: oneDNN's kernel, or our grouped one if oneDNN has only its reference. Grouped, Winograd and gemm: our
  /// kernels, which the shape must fit.
  static std::unique_ptr<ConvolutionKernel> make(const Onednn& library, Isa isa, const ConvolutionSpec& spec);
  ConvolutionKernel() = default;
  ConvolutionKernel(const ConvolutionKernel&) = delete;
  ConvolutionKernel& operator=(const ConvolutionKernel&) = delete;
  virtual ~ConvolutionKernel() = default;

  /// Weights, or their gradient, in the order this kernel wants; 0 past the last element of a tensor is kept.
  virtual Index packed_bytes() const = 0;
  virtual Index scratch_bytes() const = 0;
  /// Whether a gradient of weights can be added to the ones that are there.
  virtual bool adds() const { return false; }
  /// From, to fp32 k c r s.
  virtual void pack(const float* weights, void* packed) const = 0;
  virtual void unpack(const void* packed, float* weights) const = 0;
  /// False: the library failed.
  virtual bool execute(const ConvolutionData& data) const = 0;
  virtual std::string name() const = 0;
};

}  // namespace convoy::cpu
