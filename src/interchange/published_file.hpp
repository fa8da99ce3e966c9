// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "io/file.hpp"

namespace convoy {

/// `write` fills `path`.tmp, which is flushed and renamed: `path` is the complete new file, or still the old one.
/// Throws what `write` throws, and Error(data); the temporary file is then gone.
void write_published(const std::string& path, const std::function<void(File& file)>& write);

}  // namespace convoy
