// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cuda_backend.hpp"
#include "support/host_cuda/host_cuda.hpp"

namespace convoy::cuda {

/// A library without any graph: for what needs no convolution.
class NoForms final : public Library {
 public:
  std::vector<std::string> engines(const ConvolutionGraph&, Index) override { return {}; }
  const std::string& name() const override { return name_; }
  int sm() const override { return 90; }

 protected:
  std::shared_ptr<Operation> build(const ConvolutionGraph&, const BuildSpec&) override { return nullptr; }

 private:
  std::string name_ = "stand-in sm_90";
};

inline std::unique_ptr<CudaBackend> make_backend() { return make_cuda_backend(std::make_unique<NoForms>()); }

/// Runs `body` in all four orders of the stand-in; `fresh` settings before and after.
template <class Body>
void in_all_orders(const Body& body) {
  for (const host_cuda::Order order : host_cuda::all_orders) {
    SCOPED_TRACE(static_cast<int>(order));
    host_cuda::settings() = {order};
    host_cuda::counts() = {};
    body();
    host_cuda::settings() = {};
  }
}

template <class T>
std::vector<T> read_back(Device& device, const T* from, Index count) {
  static_assert(sizeof(T) % sizeof(float) == 0);
  constexpr std::size_t words = sizeof(T) / sizeof(float);  // NOLINT(bugprone-sizeof-expression): T may be float itself
  std::vector<T> host(static_cast<std::size_t>(count));
  const Event event = device.download(reinterpret_cast<float*>(host.data()), reinterpret_cast<const float*>(from),
                                      count * static_cast<Index>(words), device.record());
  while (!device.done(event)) {
  }
  return host;
}

}  // namespace convoy::cuda
