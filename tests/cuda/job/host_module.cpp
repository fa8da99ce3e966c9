// SPDX-License-Identifier: Apache-2.0
// libconvoy_cuda.so without a GPU: the module's own code over the stand-ins for the CUDA runtime, cuDNN's graphs and
// NCCL, for the program itself to open. Every rank of a host has a GPU of its own.
#include <cudnn.h>

#include <thread>

#include "support/host_cuda/streams.hpp"
#include "support/host_nccl/host_nccl.hpp"

namespace {

/// NCCL's work is a kernel that runs until the other ranks have come.
void enqueue(cudaStream_t stream, std::function<bool()> work) {
  host_cuda::enqueue(stream, [work = std::move(work)] {
    while (!work()) std::this_thread::yield();
  });
}

[[maybe_unused]] const bool joined = [] {
  host_nccl::settings() = {.enqueue = enqueue, .keep_with_graph = host_cuda::keep_with_graph};
  return true;
}();

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" size_t cudnnGetVersion() { return CUDNN_VERSION; }
