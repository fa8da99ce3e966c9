// SPDX-License-Identifier: Apache-2.0
#include "io/folder.hpp"

#include <filesystem>

#include "core/errors.hpp"

namespace convoy {

void make_folder(const std::string& path, const std::string& remedy) {
  std::error_code reason;
  std::filesystem::create_directories(path, reason);
  if (reason) fail(Exit::data, "cannot make the folder '{}' ({}); {}", path, reason.message(), remedy);
}

}  // namespace convoy
