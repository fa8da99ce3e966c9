// SPDX-License-Identifier: Apache-2.0
// Selects the cuDNN graph of each convolution. The rule takes the one that moves the fewest bytes, a tensor hidden in a
// workspace included; what the library has no plan for is computed by a plain convolution and kernels of ours. The
// selection as text goes into checkpoints and to the other ranks: three letters for every convolution, then the engine
// of every graph.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backend/cuda/graphs/library.hpp"
#include "backend/cuda/lowering/execution_plan.hpp"
#include "backend/cuda/lowering/layouts.hpp"

namespace convoy::cuda {

/// Words of CompileSpec::options: plain convolutions only; those with the statistics of their output; and no step runs
/// beside others.
inline constexpr std::string_view no_fusion = "no-fusion", statistics_only = "statistics-only",
                                  one_stream = "one-stream";

struct SelectedKernel {
  ConvolutionGraph graph;
  std::shared_ptr<Operation> operation;
};

/// Bytes of a workspace so big that it must hold a tensor (more than a byte an element), twice: written and read.
Index hidden_bytes(const ConvolutionGraph& graph, const Operation& operation);

class KernelSelector {
 public:
  KernelSelector(const ExecutionSpec& spec, const Lowering& lowering);

  /// What may be fused to the convolution of the group that it reads, which must be of norms and a ReLU; else none.
  Fusion fusion_of(int convolution) const;
  /// Whether a group of one norm is computed in front of all convolutions that read it, forward and for weight
  /// gradients, and never stored.
  bool in_prologues(int group);
  /// The forward pass of a convolution with `fusion` in front of it (none: its source is stored). It makes statistics
  /// where the library has such a graph. A join is taken only where the library has it; else nothing is returned.
  std::optional<SelectedKernel> forward(int convolution, Fusion fusion, bool statistics);
  /// The data gradient goes through `fusion` where that moves fewer bytes than a plain one and kernels of ours.
  /// `fusion` is none where the source's gradient isn't complete with this one; `adds`: another gradient is added.
  SelectedKernel data_gradient(int convolution, Fusion fusion, bool adds);
  SelectedKernel weight_gradient(int convolution, Fusion fusion);

  std::string text() const;
  /// two: small weight gradients may run beside the steps behind them.
  Streams streams() const { return streams_; }

 private:
  /// `-`, `n`, `j` or `d` for a fusion, a capital with statistics.
  struct Selection {
    char forward = '.', data = '.', weight = '.';
  };
  ConvolutionGraph graph_of(int convolution, Pass pass) const;
  std::shared_ptr<Operation> find(const ConvolutionGraph& graph);
  SelectedKernel need(int convolution, const ConvolutionGraph& graph);
  void read(const std::string& text);
  Index activation_bytes(int value) const;

  const ExecutionSpec& spec_;
  const Lowering& lowering_;
  Index workspace_limit_ = Index{1} << 30;
  enum class Fuses : std::uint8_t { nothing, statistics, everything };
  Fuses fuses_ = Fuses::everything;
  Streams streams_ = Streams::two;
  std::map<int, Selection> selected_;                           ///< what was selected for each convolution
  std::map<int, Selection> given_;                              ///< what choices say
  std::map<std::string, std::string> engines_, given_engines_;  ///< the key is the graph's description
  std::map<int, bool> prologues_;
};

}  // namespace convoy::cuda
