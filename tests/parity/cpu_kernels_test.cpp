// SPDX-License-Identifier: Apache-2.0
// No network that Convoy has may fall to oneDNN's reference, which makes a hundredth of what the machine can.
#include <gtest/gtest.h>

#include "backend/cpu/instruction_set.hpp"
#include "backend/factory.hpp"
#include "network/models.hpp"

namespace convoy {
namespace {

constexpr Index samples = 2;

GraphSpec usual(const std::string& model) {
  GraphSpec graph;
  graph.model = model;
  return with_usual_input(std::move(graph), 0, 0, 0);
}

std::string kernels_of(Backend& backend, const std::string& model, Precision precision) {
  const GraphSpec graph = usual(model);
  CompileSpec spec{.samples = samples, .height = graph.image_size, .width = graph.image_size, .precision = precision};
  spec.input = {.height = graph.image_size, .width = graph.image_size, .channels = static_cast<int>(graph.channels)};
  std::string kernels;
  for (const ProgramPart& part : backend.compile(make_plan(build_graph(graph), {}), spec)->parts())
    kernels += part.nodes + ": " + part.kernels + "\n";
  return kernels;
}

class CpuKernels : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (GetParam() == Precision::bf16 && !cpu::has_avx512(cpu::find_instruction_set().isa))
      GTEST_SKIP() << "no bf16 on this machine";
  }
};

TEST_P(CpuKernels, AreNeverTheReference) {
  const auto backend = make_cpu_backend(1);
  for (const std::string& model : model_names()) {
    const std::string kernels = kernels_of(*backend, model, GetParam());
    EXPECT_NE(kernels.find(model == "mlp" ? "sgemm" : "forward "), std::string::npos) << model;
    EXPECT_EQ(kernels.find(" ref"), std::string::npos) << model << "\n" << kernels;
  }
}

// Ours stands in for what oneDNN lacks, and would hide that it failed to make a wide convolution.
TEST_P(CpuKernels, AreOfGroupsOnlyWhereThereAreGroups) {
  const auto backend = make_cpu_backend(1);
  for (const char* model : {"resnet50", "resnet20", "vgg11_bn", "densenet121", "inception_v3"})
    EXPECT_EQ(kernels_of(*backend, model, GetParam()).find(" grouped"), std::string::npos) << model;
}

INSTANTIATE_TEST_SUITE_P(Precisions, CpuKernels, testing::Values(Precision::fp32, Precision::bf16),
                         [](const auto& test) { return std::string(test.param == Precision::fp32 ? "fp32" : "bf16"); });

TEST(CpuKernel, GroupsHaveOurOwn) {
  const auto backend = make_cpu_backend(1);
  EXPECT_NE(kernels_of(*backend, "resnext50_32x4d", Precision::fp32).find("forward grouped"), std::string::npos);
  EXPECT_NE(kernels_of(*backend, "efficientnet_b0", Precision::fp32).find("weights depthwise"), std::string::npos);
}

}  // namespace
}  // namespace convoy
