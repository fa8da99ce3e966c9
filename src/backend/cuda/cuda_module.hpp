// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "backend/factory.hpp"

namespace convoy {

/// Null where there is no CUDA part or no GPU that it can use; `reason` then says why.
std::unique_ptr<Backend> load_cuda_backend(const BackendSpec& spec, std::string& reason);

/// For backend_versions().
std::string cuda_version();

}  // namespace convoy
