// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "io/file.hpp"

namespace convoy {

/// Lets `write` fill `path`.tmp, flushes it and renames it: `path` is the complete new file, or still the old one.
/// Throws what `write` throws, and Error(data), and then removes the temporary file.
void write_published(const std::string& path, const std::function<void(File& file)>& write);

}  // namespace convoy
