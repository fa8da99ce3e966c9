// SPDX-License-Identifier: Apache-2.0
#include "infer/output_file.hpp"

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"

namespace convoy {
namespace fs = std::filesystem;

void require_free(const std::string& output, Existing existing, const std::vector<std::string>& read) {
  std::error_code none;
  const fs::file_status status = fs::status(output, none);
  if (!fs::exists(status)) return;
  const bool is_read = std::any_of(read.begin(), read.end(),
                                   [&](const std::string& path) { return fs::equivalent(output, path, none); });
  if (is_read) fail(Exit::usage, "--output '{}' is one of the files that are read; choose another", output);
  if (!fs::is_regular_file(status)) fail(Exit::usage, "--output '{}' is not a regular file; choose another", output);
  if (existing == Existing::stays)
    fail(Exit::usage, "'{}' is in the way; choose another --output or give --overwrite", output);
}

}  // namespace convoy
