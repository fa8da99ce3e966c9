// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

/// With the folders above it; nothing where it is there already. Throws Error(data) that ends with `remedy`.
void make_folder(const std::string& path, const std::string& remedy);

}  // namespace convoy
