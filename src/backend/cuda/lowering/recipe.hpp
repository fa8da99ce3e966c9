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
#include "backend/cuda/kernels/norm.hpp"
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// activation: scales with the batch; what bytes per image are counted from. channels: per-channel vectors and filters'
/// gradients. workspace: of one step. fixed: lives as long as a step of training, whatever touches it.
enum class BufferKind : std::uint8_t { activation, channels, workspace, fixed };

struct Buffer {
  BufferKind kind = BufferKind::activation;
  Index bytes = 0;
  int first = -1, last = -1;  ///< steps
};

/// Where an argument lies; resolved when launched, since addresses come with bind and launch. Offsets in bytes.
struct Place {
  /// buffer: of the recipe; copies: filters' copies of the set; set: its block; gradients: the gradient block.
  enum class Base : std::uint8_t { none, buffer, copies, set, gradients };
  Base base = Base::none;
  int buffer = -1;
  Index offset = 0;
  explicit operator bool() const { return base != Base::none; }
  bool operator==(const Place&) const = default;
};

/// What steps are launched with.
struct Frame {
  std::byte* arena = nullptr;
  const Index* offsets = nullptr;     ///< of buffers, bytes
  const float* set = nullptr;         ///< the parameter set's block
  const float* loss_scale = nullptr;  ///< null: 1
  const std::byte* copies = nullptr;
  float* gradients = nullptr;  ///< null unless training
  const FeedNumbers* feed = nullptr;
  const SampleRow* rows = nullptr;
  const float* mean_image = nullptr;
  const EvaluationNorm* norms = nullptr;  ///< device memory
  const StepNumbers* step = nullptr;
  Tally* tally = nullptr;
  cudaStream_t stream = nullptr;

  void* at(const Place& place) const;
  float* floats(const Place& place) const { return static_cast<float*>(at(place)); }
};

enum class Section : std::uint8_t { forward, backward };

struct Touch {
  int buffer = -1;
  Access access = Access::read;
};

struct Step {
  std::string what;           ///< `apply`, `forward [join] +statistics`
  std::vector<NodeId> nodes;  ///< whose work it is
  Section section = Section::forward;
  std::vector<Touch> touches;
  std::function<void(const Frame&)> run;

  /// The value in front of which convolutions may be fused in several ways, for whose sake this step is (lowering/
  /// values.hpp): what is fused differently is compared by it. -1: none.
  int serves = -1;

  std::shared_ptr<Operation> operation;  ///< cuDNN; null: a kernel of ours
  Form form;
  Index hidden_bytes = 0;  ///< of a workspace that holds a tensor: written and read
};

/// Steps up to (not including) `end_step`, then its row of Program::stages().
struct RecipeStage {
  std::size_t end_step = 0;
  ReadyRange ready;
};

/// A norm of an evaluation: offsets in the values and in the statistics block, and its vectors.
struct RecipeNorm {
  Index gamma = 0, beta = 0, mean = 0, variance = 0;
  Index channels = 0;
  float epsilon = 0;
  Place scale, shift, low_scale, low_shift;
};

struct Recipe {
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<RecipeStage> stages;
  std::vector<Range> gaps;  ///< of the gradient block: what no step writes
  std::vector<RecipeNorm> evaluation_norms;
  int logits = -1, losses = -1, worst = -1;  ///< buffers
  Index samples = 0;
  std::string choices;

  /// Activations that the step reads and writes, each once, and hidden ones.
  Index bytes_moved(const Step& step) const;
};

struct RecipeSpec {
  const Plan& plan;
  const CompileSpec& compile;
  const CopyLayout& copies;
  Library& library;
};

/// Touches no device. Throws Error(device) for what isn't possible, Error(usage) for choices that don't fit.
Recipe make_recipe(const RecipeSpec& spec);

}  // namespace convoy::cuda
