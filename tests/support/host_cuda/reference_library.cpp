// SPDX-License-Identifier: Apache-2.0
// Answers cuDNN's graphs in host tests: the double reference of each graph's description, queued on the stand-in like a
// kernel of the library. Which graphs there are is what the plan check sees on described cards (docs/cuda.md).
#include "support/host_cuda/reference_library.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/errors.hpp"
#include "support/host_cuda/host_cuda.hpp"
#include "support/host_cuda/reference_graph.hpp"

// Reads and writes for the thread sanitizer, where it is linked: this file isn't instrumented.
extern "C" {
__attribute__((weak)) void __tsan_read_range(void* address, unsigned long size);
__attribute__((weak)) void __tsan_write_range(void* address, unsigned long size);
}

namespace convoy::cuda {
namespace {

constexpr int hopper = 90;
/// Above this a graph does not belong to a test's network: it measures what the card reaches (cuda/ceilings.hpp), and
/// one line of one image of it is computed.
constexpr double most_flops = 1e10;

class ReferenceOperation final : public Operation {
 public:
  ReferenceOperation(const ConvolutionGraph& graph, std::string engine, Index workspace)
      : form_(computed(graph)), operands_(operands_of(graph)), engine_(std::move(engine)), workspace_(workspace) {}

  Index workspace_bytes() const override { return workspace_; }
  const std::string& engine() const override { return engine_; }

  void execute(const Pointers& pointers, cudaStream_t stream) override {
    const host_cuda::Inside inside;
    for (const Operand& operand : operands_) {
      const auto address = reinterpret_cast<std::uintptr_t>(pointers[operand.role]);
      if (!host_cuda::is_device(pointers[operand.role])) host_cuda::fail("an operand of a graph is not device memory");
      if (address % 16 != 0) host_cuda::fail("an operand of a graph is not on 16 bytes");
    }
    if (!host_cuda::is_device(pointers.workspace)) host_cuda::fail("a graph's workspace is not device memory");
    // By value: the work may still be queued when its program is gone.
    const auto queued = host_cuda::enqueue(
        stream, [graph = form_, operands = operands_, bytes = static_cast<std::size_t>(workspace_), pointers] {
          mark(graph, operands, pointers);
          // A workspace is overwritten before and after: nothing else may lie there.
          std::memset(pointers.workspace, 0xff, bytes);
          run_form(graph, pointers);
          std::memset(pointers.workspace, 0xff, bytes);
        });
    if (queued != cudaSuccess) fail(Exit::device, "the stand-in refused a graph");
  }

 private:
  static ConvolutionGraph computed(ConvolutionGraph graph) {
    if (flops_of(graph) > most_flops) graph.n = graph.h = 1;
    return graph;
  }
  static void mark(const ConvolutionGraph& graph, const std::vector<Operand>& operands, const Pointers& pointers) {
    if (__tsan_read_range == nullptr) return;
    for (const Operand& operand : operands) {
      const Index bytes = operand.count() * (operand.is_float ? 4 : storage_bytes(graph.precision));
      (operand.access == Access::read ? __tsan_read_range : __tsan_write_range)(pointers[operand.role],
                                                                                static_cast<unsigned long>(bytes));
    }
  }

  const ConvolutionGraph form_;
  const std::vector<Operand> operands_;
  const std::string engine_;
  const Index workspace_;
};

class ReferenceLibrary final : public Library {
 public:
  ReferenceLibrary(int sm, Fusing fusing)
      : sm_(sm), fusing_(fusing), name_("double reference as sm_" + std::to_string(sm)) {}

  std::vector<std::string> engines(const ConvolutionGraph& graph, Index workspace_limit) override {
    if (!supports(graph) || workspace_of(graph) > workspace_limit) return {};
    return {"reference", "reference2"};
  }
  const std::string& name() const override { return name_; }
  int sm() const override { return sm_; }

 protected:
  std::shared_ptr<Operation> build(const ConvolutionGraph& graph, const BuildSpec& spec) override {
    const std::vector<std::string> offered = engines(graph, spec.workspace_limit);
    if (offered.empty()) return nullptr;
    if (spec.engine.empty()) return std::make_shared<ReferenceOperation>(graph, offered[0], workspace_of(graph));
    for (const std::string& engine : offered)
      if (engine == spec.engine) return std::make_shared<ReferenceOperation>(graph, engine, workspace_of(graph));
    return nullptr;
  }

 private:
  bool supports(const ConvolutionGraph& graph) const {
    const bool fused = graph.fusion != Fusion::none || graph.statistics;
    if (!fused) return true;
    if (fusing_ == Fusing::fp16 && graph.precision != Precision::fp16) return false;
    if (graph.groups != 1 || graph.c % 8 != 0 || graph.k % 8 != 0) return false;
    const bool pointwise = graph.r == 1 && graph.s == 1 && graph.pad == 0;
    if (graph.pass == Pass::forward) {
      if (graph.fusion != Fusion::none && !graph.statistics) return false;
      return !joins(graph.fusion) || (sm_ >= hopper && pointwise && graph.stride == 1);
    }
    if (graph.pass == Pass::weight_gradient) return !joins(graph.fusion);
    if (!joins(graph.fusion)) return graph.fusion == Fusion::norm;
    return graph.stride == 1 && (pointwise || sm_ >= hopper);
  }
  /// Before Hopper a fused data gradient keeps all of dx in floats.
  Index workspace_of(const ConvolutionGraph& graph) const {
    const bool hides = graph.pass == Pass::data_gradient && graph.fusion != Fusion::none && sm_ < hopper;
    return hides ? 4 * graph.n * graph.h * graph.w * graph.c : 64;
  }

  const int sm_;
  const Fusing fusing_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<Library> make_reference_library(int sm, Fusing fusing) {
  return std::make_unique<ReferenceLibrary>(sm, fusing);
}

/// CONVOY_HOST_SM=80: an older card.
std::unique_ptr<Library> make_library() {
  const char* const sm = std::getenv("CONVOY_HOST_SM");
  return make_reference_library(sm != nullptr ? std::atoi(sm) : hopper, Fusing::fp16);
}
std::unique_ptr<Library> make_library(const CardDescription& card) {
  return make_reference_library(card.sm, Fusing::fp16);
}

}  // namespace convoy::cuda
