// SPDX-License-Identifier: Apache-2.0
// The operations of the CUDA backend, by the attributes of their nodes. For each: in which layout its output lies, its
// steps forward, and its steps backward. A new operation is a pair of files in this folder and its lines here; a node
// that is missing here doesn't compile.
#pragma once
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/cuda/lowering/backward_pass.hpp"
#include "backend/cuda/lowering/forward_pass.hpp"
#include "backend/cuda/operations/batch_norm.hpp"
#include "backend/cuda/operations/pool.hpp"

namespace convoy::cuda {

void forward(ForwardPass& pass, int id, const Input& input);
void forward(ForwardPass& pass, int id, const Convolution& convolution);
void forward(ForwardPass& pass, int id, const Linear& linear);
void forward(ForwardPass& pass, int id, const Pool& pool);
void forward(ForwardPass& pass, int id, const GlobalAveragePool& pool);
void forward(ForwardPass& pass, int id, const AdaptiveAveragePool& pool);
void forward(ForwardPass& pass, int id, const LocalResponseNorm& norm);
void forward(ForwardPass& pass, int id, const Dropout& dropout);
void forward(ForwardPass& pass, int id, const Concatenation& concatenation);
void forward(ForwardPass& pass, int id, const ChannelGate& gate);
void forward(ForwardPass& pass, int id, const Loss& loss);

inline void backward(BackwardPass&, int, const Input&) {}
void backward(BackwardPass& pass, int id, const Convolution& convolution);
void backward(BackwardPass& pass, int id, const Linear& linear);
void backward(BackwardPass& pass, int id, const Pool& pool);
void backward(BackwardPass& pass, int id, const GlobalAveragePool& pool);
void backward(BackwardPass& pass, int id, const AdaptiveAveragePool& pool);
void backward(BackwardPass& pass, int id, const LocalResponseNorm& norm);
void backward(BackwardPass& pass, int id, const Dropout& dropout);
void backward(BackwardPass& pass, int id, const Concatenation& concatenation);
void backward(BackwardPass& pass, int id, const ChannelGate& gate);
void backward(BackwardPass& pass, int id, const Loss& loss);

/// Nodes that are no operations here: groups evaluate them, and a flattened tensor lies in memory as it did.
template <class T>
concept Pointwise = std::is_same_v<T, BatchNorm> || std::is_same_v<T, Activation> || std::is_same_v<T, Add> ||
    std::is_same_v<T, Flatten>;
void forward(ForwardPass&, int, const Pointwise auto&) {}
void backward(BackwardPass&, int, const Pointwise auto&) {}

// What operations share. Each lies in the file that is named.

/// conversion.cpp: the same value with another number of stored channels, and the gradient of that.
void convert(ForwardPass& pass, int id);
void convert_gradient(BackwardPass& pass, int id);

/// pointwise.cpp: the steps of a group, and from its gradient to those of its terms. `hand_on`: `g` is the gradient
/// before the activation, and the sums of the group's norms are complete.
BufferRef evaluate(ForwardPass& pass, int id);
void differentiate(BackwardPass& pass, int id);
void hand_on(BackwardPass& pass, int id, BufferRef g);

/// batch_norm.cpp: sums over a value in memory, and the vectors of its norms. Sums of a convolution become vectors
/// where these are first read (ForwardPass::settle).
void add_statistics(ForwardPass& pass, int id);
/// Sums [parts][channels], `stride` floats apart.
struct ValueSums {
  BufferRef sums, squares;
  Index parts = 1, stride = 0;
  bool around_zero = false;  ///< made by a convolution; see Recount
};
void finish_norms(ForwardPass& pass, int id, const ValueSums& from);
void add_evaluation_norms(ForwardPass& pass);
/// Sums over a batch become gradients of scale and shift, and the vectors of the norm's own gradient.
void finish_norms(BackwardPass& pass, const std::vector<NormSums>& norms);
/// The same by the last block of a reduction of ours; `norms`: of its terms behind the first, -1: dropped. The caller
/// then calls finish_norm_rows for each.
std::function<GradientSumsEnd(const LaunchContext&)> end_in_reduction(PlanBuilder& builder,
                                                                      const std::vector<int>& norms);
void finish_norm_rows(PlanBuilder& builder, int norm);

/// convolution.cpp: the gradient of a bias that is added to value `id`, whose gradient is `g`.
void add_bias_gradient(BackwardPass& pass, int row, BufferRef g, int id);

/// pool.cpp: the windows of a pool.
PoolShape pool_shape(const PlanBuilder& builder, int id, const Pool& pool);

/// pooled_norm.cpp: the gradient of a max pool that evaluated the group of one norm in front of it on the fly.
void differentiate_pooled_norm(BackwardPass& pass, int id, const Pool& pool);

}  // namespace convoy::cuda
