// SPDX-License-Identifier: Apache-2.0
// Kernels on the host, and with CONVOY_ON_GPU on a GPU: device memory that is filled from doubles and read back as
// doubles, in every storage, on the host under every order of the runner.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "backend/cuda/kernels/types.hpp"
#ifdef CONVOY_ON_GPU
#include <cuda_runtime.h>
#else
#include "support/host_cuda/host_cuda.hpp"
#endif
#include "support/reference/tensor.hpp"

namespace convoy::cuda {

using reference::Tensor;
using reference::Values;

/// Relative rounding error of one store.
double epsilon_of(Storage storage);
/// The nearest value that the storage has.
double rounded(double value, Storage storage);

class Bench {
 public:
  Bench();
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  cudaStream_t stream() const { return stream_; }
  void* bytes(std::size_t count);  ///< not initialised: NaN
  template <class T>
  T* empty(Index count) {
    return static_cast<T*>(bytes(static_cast<std::size_t>(count) * sizeof(T)));
  }
  template <class T>
  T* put(const std::vector<T>& host) {
    T* const at = empty<T>(static_cast<Index>(host.size()));
    copy_in(at, host.data(), host.size() * sizeof(T));
    return at;
  }
  template <class T>
  std::vector<T> get(const T* device, Index count) {
    std::vector<T> host(static_cast<std::size_t>(count));
    copy_out(host.data(), device, host.size() * sizeof(T));
    return host;
  }
  float* floats(const Values& values) { return put(std::vector<float>(values.begin(), values.end())); }
  Values floats(const float* device, Index count);

  /// Rounds the values to what is stored.
  void* elements(Values& values, Storage storage);
  Values elements(const void* device, Index count, Storage storage);
  void* empty_elements(Index count, Storage storage) {
    return bytes(static_cast<std::size_t>(count * bytes_of(storage)));
  }
  /// n c h w to n h w stored_c and back; the channels past c are 0.
  void* tensor(Tensor& x, Storage storage, Index stored_c = 0);
  Tensor tensor(const void* device, const Tensor& shape, Storage storage, Index stored_c = 0);

 private:
  void copy_in(void* to, const void* from, std::size_t count);
  void copy_out(void* to, const void* from, std::size_t count);

  cudaStream_t stream_ = nullptr;
  std::vector<void*> memory_;
};

/// A test for each storage; its body runs in all four orders of the host, on a GPU once.
class EveryStorage : public testing::TestWithParam<Storage> {
 protected:
  template <class Body>
  void in_all_orders(const Body& body) {
#ifdef CONVOY_ON_GPU
    body();
#else
    for (const host_cuda::Order order : host_cuda::all_orders) {
      SCOPED_TRACE(static_cast<int>(order));
      host_cuda::settings().order = order;
      body();
      if (HasFatalFailure()) break;
    }
    host_cuda::settings() = {};
#endif
  }
  static Storage storage() { return GetParam(); }
  static double epsilon() { return epsilon_of(GetParam()); }
};

std::string name_of_storage(const testing::TestParamInfo<Storage>& info);
#define CONVOY_EVERY_STORAGE(suite) \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::Values(Storage::f32, Storage::bf16, Storage::f16), name_of_storage)

/// Every element within `tolerance` times the largest magnitude.
void expect_close(const Values& got, const Values& want, double tolerance, const char* what);
void expect_success(cudaError_t error);

}  // namespace convoy::cuda
