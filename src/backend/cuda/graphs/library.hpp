// SPDX-License-Identifier: Apache-2.0
// How a graph becomes something that runs. Two libraries exist: cuDNN (frontend.cpp), for the GPU at hand or for one
// that is only described, and the double reference of tests/support.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/graphs/convolution_graph.hpp"

namespace convoy::cuda {

/// 9.8, as cudnnGetVersion counts: its graphs have what the graphs need (graphs/frontend.cpp).
inline constexpr std::size_t oldest_cudnn = 90800;

/// Device addresses by role; null where the graph has no such operand.
struct Pointers {
  std::array<void*, role_count> at{};
  void* workspace = nullptr;
  void*& operator[](Role role) { return at[static_cast<std::size_t>(role)]; }
  void* operator[](Role role) const { return at[static_cast<std::size_t>(role)]; }
};

/// A graph compiled for a card.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;
  virtual Index workspace_bytes() const = 0;
  /// Engine and knobs, `eng2_k2=3_k5=1`: what choices are made of.
  virtual const std::string& engine() const = 0;
  /// Queued; capturable. Throws Error(device).
  virtual void execute(const Pointers& pointers, cudaStream_t stream) = 0;
};

/// ready: kernels that come with the library. any: also those that it compiles at run time, a second or more each.
enum class Kernels : std::uint8_t { ready, any };

struct BuildSpec {
  Index workspace_limit = 0;  ///< bytes; plans that need more are not taken
  std::string engine;         ///< empty: the heuristics' first; else exactly this one, or none
  Kernels kernels = Kernels::ready;
  // NOLINTNEXTLINE(modernize-use-nullptr): as in checkpoint/fence.hpp
  auto operator<=>(const BuildSpec&) const = default;
};

class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;
  /// Null where there is no plan for the graph. Kept: asked again, the same operation is returned. One thread at a
  /// time: cuDNN allows no more for a handle.
  std::shared_ptr<Operation> find(const ConvolutionGraph& graph, const BuildSpec& spec);
  /// Engines that a graph could take, best guess first; for timing on a device.
  virtual std::vector<std::string> engines(const ConvolutionGraph& graph, Index workspace_limit) = 0;
  /// `NVIDIA H100 80GB HBM3 sm_90, cuDNN 9.19.0`.
  virtual const std::string& name() const = 0;
  virtual int sm() const = 0;  ///< 80, 90

 protected:
  /// Null where there is no plan.
  virtual std::shared_ptr<Operation> build(const ConvolutionGraph& graph, const BuildSpec& spec) = 0;

 private:
  std::map<std::pair<ConvolutionGraph, BuildSpec>, std::shared_ptr<Operation>> operations_;
};

/// A card that is only described: plans are built for it, none can run.
struct CardDescription {
  std::string properties;  ///< JSON of cudnn_frontend::DeviceProperties
  std::string name;
  int sm = 0;
};
/// Reads name and sm from the properties. Throws Error(usage) where they are missing.
CardDescription describe_card(const std::string& properties);

/// cuDNN on the current device, or for a described card. Throws Error(device) where cuDNN is too old or the description
/// is refused. Answered by tests/support/host_cuda/reference_library.cpp in host tests.
std::unique_ptr<Library> make_library();
std::unique_ptr<Library> make_library(const CardDescription& card);

}  // namespace convoy::cuda
