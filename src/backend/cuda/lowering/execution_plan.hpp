// SPDX-License-Identifier: Apache-2.0
// A plan compiled for sizes, precision and a card, before it meets a device: steps in order of execution, each a cuDNN
// graph or a kernel, the tensors they touch, and the stages that the trainer sees. All accounting (memory, bytes moved,
// `convoy inspect plan`) reads these steps, so it can't differ from what runs.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cuda/filter_copies.hpp"
#include "backend/cuda/graphs/library.hpp"
#include "backend/cuda/kernels/gradients.hpp"
#include "backend/cuda/kernels/types.hpp"
#include "backend/cuda/operations/batch_norm.hpp"
#include "backend/lowering/memory_plan.hpp"
#include "backend/lowering/stages.hpp"

namespace convoy::cuda {

/// Values, norms and steps are numbered by int, as in backend/lowering.
inline std::size_t index_of(int number) { return static_cast<std::size_t>(number); }

/// Of buffers and workspaces, in bytes: what CUDA's own allocations have.
inline constexpr Index block_alignment = 256;

/// activation: scales with the batch; bytes per image are counted from these. channels: per-channel vectors and
/// gradients of weights. workspace: one step's. fixed: lives as long as a step of training, whatever accesses it.
enum class BufferKind : std::uint8_t { activation, channels, workspace, fixed };

struct Buffer {
  BufferKind kind = BufferKind::activation;
  Index bytes = 0;
};

/// Where an argument lies; resolved when launched, since addresses come with bind and launch. Offsets in bytes.
struct BufferRef {
  /// buffer: one of the plan's; copies: the set's copies of weights; set: its block; gradients: the gradient block.
  enum class Base : std::uint8_t { none, buffer, copies, set, gradients };
  Base base = Base::none;
  int buffer = -1;
  Index offset = 0;
  explicit operator bool() const { return base != Base::none; }
  BufferRef after_floats(Index count) const { return {base, buffer, offset + 4 * count}; }
  bool operator==(const BufferRef&) const = default;
};

/// What steps are launched with.
struct LaunchContext {
  std::byte* arena = nullptr;
  const Index* offsets = nullptr;     ///< where the buffers lie in the arena, in bytes
  const float* set = nullptr;         ///< the parameter set's block
  const float* loss_scale = nullptr;  ///< null: 1
  const std::byte* copies = nullptr;
  float* gradients = nullptr;  ///< null unless training
  const FeedNumbers* feed = nullptr;
  const SampleRow* rows = nullptr;
  const float* mean_image = nullptr;
  const float* class_weights = nullptr;   ///< null: all are 1
  const EvaluationNorm* norms = nullptr;  ///< device memory
  const StepNumbers* step = nullptr;
  Counters* counters = nullptr;
  const GradientPiece* pieces = nullptr;  ///< device memory; null while kernels are measured
  std::int32_t* worst = nullptr;          ///< kernels/gradients.hpp
  unsigned* arrivals = nullptr;           ///< where blocks meet (kernels/meeting.cuh): all 0 between launches
  cudaStream_t stream = nullptr;

  void* at(const BufferRef& place) const;
  float* floats(const BufferRef& place) const { return static_cast<float*>(at(place)); }
};

enum class Section : std::uint8_t { forward, backward };
/// two: some steps may run beside the row of launches (beside.hpp).
enum class Streams : std::uint8_t { one, two };

struct BufferAccess {
  int buffer = -1;
  Access access = Access::read;
};

struct Step {
  std::string what;           ///< `apply`, `forward [join] +statistics`
  std::vector<NodeId> nodes;  ///< whose work it is
  Section section = Section::forward;
  std::vector<BufferAccess> accesses;
  std::function<void(const LaunchContext&)> run;

  /// The value that the step is for, where convolutions behind it may be fused in several ways: tuning compares the
  /// ways by it. -1: none.
  int serves = -1;

  std::shared_ptr<Operation> operation;  ///< cuDNN; null: a kernel of ours
  ConvolutionGraph graph;
  Index hidden_bytes = 0;  ///< a workspace that holds a tensor, written and read
  Index other_bytes = 0;   ///< of gradients of weights, where the step is not the convolution's
  int launches = 1;        ///< of a kernel of ours
  bool again = false;      ///< a forward step that runs a second time, within backward
  /// Runs in a stream of its own, beside the steps behind it. The last step of its stage waits for it.
  bool beside = false;
  /// Only if `beside`: true if this step must wait for all that the row has queued so far; false if an earlier step
  /// beside the row has already waited for what both need.
  bool waits = false;

  bool makes_data_gradient() const {
    return section == Section::backward && !again && !(operation && graph.pass == Pass::weight_gradient);
  }
};
/// Bytes of tensors up to which a weight gradient runs beside others. It takes about 10 us of an H100's memory then, so
/// that its gap is a good part of it; and it keeps its tensors in memory until its stage ends.
inline constexpr Index most_bytes_beside = 32 << 20;

/// A norm of an evaluation, or a frozen one: offsets in the values and in the statistics block, and its vectors.
struct EvaluationNormRefs {
  Index gamma = 0, beta = 0, mean = 0, variance = 0;
  Index channels = 0;
  float epsilon = 0;
  BufferRef scale, shift, low_scale, low_shift;
};

struct ExecutionPlan {
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  lowering::Placement placement;  ///< where the buffers lie: those that no step needs at once share memory
  std::vector<lowering::Stage> stages;
  std::vector<GradientPiece> pieces;  ///< of the stages, one stage behind the other
  std::vector<Range> gaps;            ///< parts of the exchange area that no step writes; zeroed when a step begins
  Index arrivals = 0;                 ///< counters where blocks meet
  std::vector<EvaluationNormRefs> evaluation_norms;
  int logits = -1, losses = -1;  ///< buffers
  Index samples = 0;
  std::string choices;
  Recomputation recomputation;  ///< floats_without: of the buffers alone

  /// Activations that the step reads and writes, each once, and hidden ones.
  Index bytes_moved(const Step& step) const;
};

struct ExecutionSpec {
  const Plan& plan;
  const CompileSpec& compile;
  const CopyLayout& copies;
  Library& cudnn;
};

/// Touches no device. Throws Error(device) for what isn't possible, Error(usage) for choices that don't fit.
ExecutionPlan make_execution_plan(const ExecutionSpec& spec);

}  // namespace convoy::cuda
