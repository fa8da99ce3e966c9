// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy {

/// Creates the folder and its parents; does nothing if it exists. Throws Error(data), whose message ends with `remedy`.
void make_folder(const std::string& path, const std::string& remedy);

}  // namespace convoy
