// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "backend/cpu/convolution_kernel.hpp"

namespace convoy::cpu {

struct Onednn::Handles {
  dnnl::engine engine;
  std::vector<dnnl::stream> streams;
};

}  // namespace convoy::cpu
