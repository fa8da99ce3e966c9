// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend does not take is said when a program is compiled, not by a launch that fails.
#include "backend/cuda/cuda_backend.hpp"
#include "support/case_graph.hpp"
#include "support/expect_error.hpp"
#include "support/formula.hpp"
#include "support/host_cuda/reference_library.hpp"

namespace convoy::cuda {
namespace {

void compile(const CaseGraph& made) {
  CompileSpec spec;
  spec.samples = made.input.n;
  spec.height = made.input.h;
  spec.width = made.input.w;
  spec.input = formula_input(made.input.h, made.input.w, made.input.c);
  static_cast<void>(
      make_cuda_backend(make_reference_library(90, Fusing::fp16))->compile(make_plan(made.graph, {}), spec));
}

void compile(const std::string& line) { compile(parse_case(line)); }

/// One tensor of 8 channels, so many times side by side.
CaseGraph side_by_side(Index count) {
  CaseGraph made = parse_case("n1c3h1w1 make:k8 fork cat");
  for (Node& node : made.graph.nodes) {
    if (as<Concatenation>(node) != nullptr) node.inputs.resize(static_cast<std::size_t>(count), node.inputs[0]);
    if (auto* const linear = std::get_if<Linear>(&node.attributes)) {
      linear->in = 8 * count;
      node.parameters[0].shape[1] = 8 * count;
    }
  }
  return made;
}

TEST(Limits, AWindowWhosePlacesAreNoByte) {
  compile("n1c3h20w20 maxpool:r15s1");
  compile("n1c3h20w20 avgpool:r17s1");
  expect_error(Exit::device, {"the maximum of 16 x 16 pixels", "15 x 15 at most", "average pooling or --device cpu"},
               [] { compile("n1c3h20w20 maxpool:r16s1"); });
}

TEST(Limits, ABatchThatNoGridTakes) {
  compile("n65535c1h1w1");
  expect_error(Exit::device, {"batches of 65536 images", "lower --batch-size"}, [] { compile("n65536c1h1w1"); });
}

TEST(Limits, AResponseNormWhoseRowDoesNotFit) {
  compile("n1c3h1w1 make:k4096 lrn:r5");
  expect_error(Exit::device, {"local response norm of 4097 channels", "4096 at most"},
               [] { compile("n1c3h1w1 make:k4097 lrn:r5"); });
}

TEST(Limits, AConcatenationOfMorePartsThanALaunchTakes) {
  compile(side_by_side(64));
  expect_error(Exit::device, {"concatenates 65 tensors", "64 at most", "in two steps"},
               [] { compile(side_by_side(65)); });
}

}  // namespace
}  // namespace convoy::cuda
