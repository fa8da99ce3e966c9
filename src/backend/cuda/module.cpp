// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/module.hpp"

#include <cudnn.h>

#include "core/errors.hpp"
#include "core/version.hpp"

namespace convoy {
namespace {

std::unique_ptr<Backend> make_cuda(const BackendSpec&, std::string& problem) {
  // cuDNN keeps its promises upwards only: a program runs with its own minor version or a newer one.
  const std::size_t found = cudnnGetVersion(), wanted = CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100;
  if (found < wanted) {
    problem = fmt::format("cuDNN {}.{} was found, {}.{} or newer is needed", found / 10000, found / 100 % 100,
                          CUDNN_MAJOR, CUDNN_MINOR);
    return nullptr;
  }
  problem = "the backend is not in this build yet";
  return nullptr;
}

const std::string& build() {
  static const std::string text = build_id() + ", " + compiler();
  return text;
}

}  // namespace
}  // namespace convoy

extern "C" const convoy::CudaEntry* convoy_cuda_entry() {
  static const convoy::CudaEntry entry{.build = convoy::build().c_str(), .make_backend = convoy::make_cuda};
  return &entry;
}
