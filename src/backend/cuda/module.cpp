// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/module.hpp"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/core.h>

#include "backend/cuda/cuda_backend.hpp"
#include "backend/cuda/program.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/cuda/updater.hpp"
#include "core/version.hpp"

namespace convoy::cuda {
namespace {

/// Machine code is for 8.0 and 9.0, and newer cards compile the rest.
constexpr int oldest_capability = 8;

/// Ranks of a host take its GPUs in turn. Where a launcher shows each rank a GPU of its own, that is number 0.
void take_device(const BackendSpec& spec, std::string& problem) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "counting the GPUs");
  const int device = spec.node_rank % devices;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "asking for the GPU's properties");
  if (properties.major < oldest_capability) {
    problem = fmt::format("GPU {} ({}) has compute capability {}.{}, {}.0 or newer is needed; take another GPU", device,
                          properties.name, properties.major, properties.minor, oldest_capability);
    return;
  }
  check(cudaSetDevice(device), "taking the GPU");
}

std::unique_ptr<Backend> make(const BackendSpec& spec, std::string& problem) {
  const std::size_t found = cudnnGetVersion(), wanted = oldest_cudnn;
  if (found < wanted) {
    problem = fmt::format("cuDNN {}.{} was found, {}.{} or newer is needed; load that one", found / 10000,
                          found / 100 % 100, wanted / 10000, wanted / 100 % 100);
    return nullptr;
  }
  take_device(spec, problem);
  if (!problem.empty()) return nullptr;
  return make_cuda_backend(make_library());
}

std::string describe_on(const std::string& card, const Plan& plan, const CompileSpec& spec) {
  const auto library = make_library(describe_card(card));
  return fmt::format("{}: {}", library->name(), describe_program(*library, plan, spec));
}

Index arena_on(const std::string& card, const Plan& plan, const CompileSpec& spec) {
  // A search for the largest batch compiles many programs for one card, and to make a library takes seconds.
  static std::string last;
  static std::unique_ptr<Library> library;
  if (library == nullptr || card != last) {
    library = make_library(describe_card(card));
    last = card;
  }
  return program_arena_floats(*library, plan, spec);
}

double free_memory() {
  std::size_t left = 0, all = 0;
  check(cudaMemGetInfo(&left, &all), "asking for the GPU's memory");
  return static_cast<double>(left);
}

const std::string& build() {
  static const std::string text = build_id() + ", " + compiler();
  return text;
}

}  // namespace
}  // namespace convoy::cuda

extern "C" const convoy::CudaEntry* convoy_cuda_entry() {
  static const convoy::CudaEntry entry{.build = convoy::cuda::build().c_str(),
                                       .make_backend = convoy::cuda::make,
                                       .describe_on_card = convoy::cuda::describe_on,
                                       .arena_on_card = convoy::cuda::arena_on,
                                       .updater_floats_on_card = convoy::cuda::updater_floats,
                                       .free_memory = convoy::cuda::free_memory};
  return &entry;
}
