// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.hpp"

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"

namespace convoy {
namespace fs = std::filesystem;
namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  if (fs::equivalent(a, b, none)) return true;
  const fs::path x = fs::weakly_canonical(a, none), y = fs::weakly_canonical(b, none);
  return !x.empty() && x == y;
}

}  // namespace

void check_output(const std::string& option, const std::string& path, const std::vector<std::string>& others) {
  if (path.empty()) return;
  std::error_code none;
  if (fs::is_other(path, none))
    fail(Exit::usage, "cannot write to '{}' (it is a pipe, socket or device); choose a file for --{}", path, option);
  for (const std::string& other : others)
    if (!other.empty() && is_same_file(path, other))
      fail(Exit::usage, "--{} would replace '{}', which this command also reads or writes; choose another file", option,
           other);
}

std::string link_target(const std::string& path) {
  std::error_code none;
  if (!fs::is_symlink(path, none)) return path;
  const auto target = fs::canonical(path, none);
  return none ? path : target.string();
}

}  // namespace convoy
