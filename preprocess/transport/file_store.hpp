// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// A folder of this machine or of a shared file system.
std::unique_ptr<Store> open_file_store(const std::string& folder);

}  // namespace convoy::preparation
