// SPDX-License-Identifier: Apache-2.0
// A small network's steps under the thread sanitizer, to which the stand-in tells what streams, events, barriers and
// the borders of kernels order, and nothing else. races_test.py runs it with waits forgotten (CONVOY_DROP_WAIT).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "backend/cuda/cuda_backend.hpp"
#include "cuda/step/training.hpp"
#include "support/host_cuda/host_cuda.hpp"
#include "support/host_cuda/reference_library.hpp"

namespace convoy::cuda {
namespace {

long dropped_wait() {
  const char* const text = std::getenv("CONVOY_DROP_WAIT");
  return text != nullptr ? std::atol(text) : -1;
}

class Block : public testing::TestWithParam<Launching> {};
INSTANTIATE_TEST_SUITE_P(All, Block, testing::Values(Launching::direct, Launching::replayed));

TEST_P(Block, IsWithoutRaces) {
  TrainingSpec spec{.model = small_model("resnet8"), .batch = 1, .image = 4, .steps = 4};
  spec.precision = Precision::fp16;
  spec.launching = GetParam();
  spec.rows = Rows::pinned;
  spec.reading = Reading::set;
  spec.before_step = [](int step) { std::printf("before step %d: %ld waits\n", step, host_cuda::counts().waits); };
  host_cuda::settings() = {.order = host_cuda::Order::forward, .drop_wait = dropped_wait()};
  host_cuda::counts() = {};
  const auto backend = make_cuda_backend(make_reference_library(90, Fusing::fp16));
  EXPECT_FALSE(train(*backend, spec).set.empty());
}

}  // namespace
}  // namespace convoy::cuda
