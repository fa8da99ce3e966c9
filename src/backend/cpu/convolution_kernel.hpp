// SPDX-License-Identifier: Apache-2.0
// One direction of one convolution for a fixed number of images and threads: a oneDNN primitive with its argument
// arrays made ahead, so that executing it allocates nothing of ours.
#pragma once
#include <memory>
#include <string>

#include "backend/cpu/tensor_layout.hpp"
#include "core/types.hpp"

namespace convoy::cpu {

/// MemoryFormat of spatial tensors: nChw16c, or nhwc.
enum class MemoryFormat : std::uint8_t { blocked, nhwc };
enum class Direction : std::uint8_t { forward, data, weights };
enum class Algorithm : std::uint8_t { direct, winograd };

struct ConvolutionShape {
  Index images = 0, in = 0, out = 0, height = 0, width = 0;
  int kernel = 3, stride = 1, pad = 1, groups = 1;
  bool bias = false;
  bool reads_plain = false;  ///< the source is n c h w
  MemoryFormat format = MemoryFormat::blocked;
  Storage storage = Storage::f32;
};

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

class ConvolutionKernel {
 public:
  /// Null where the library has no such kernel (Winograd only: direct always exists).
  static std::unique_ptr<ConvolutionKernel> make(const Onednn& library, const ConvolutionSpec& spec);
  ~ConvolutionKernel();

  /// Weights, or their gradient, in the order this kernel wants; 0 past the last element of a tensor is kept.
  Index packed_bytes() const;
  Index scratch_bytes() const;
  /// From, to fp32 k c r s.
  void pack(const float* weights, void* packed) const;
  void unpack(const void* packed, float* weights) const;
  /// `source` and `result` are x and y, or their gradients. False: the library failed.
  bool execute(int copy, const void* source, const void* packed, const float* bias, const void* result,
               void* scratch) const;
  /// The library's name of it.
  const std::string& name() const;

 private:
  struct Parts;
  explicit ConvolutionKernel(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace convoy::cpu
