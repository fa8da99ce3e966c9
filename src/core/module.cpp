// SPDX-License-Identifier: Apache-2.0
#include "core/module.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace convoy {
namespace fs = std::filesystem;

Module open_module(const std::string& file) {
  std::vector<fs::path> folders;
  if (const char* const wanted = std::getenv("CONVOY_MODULE_DIR"); wanted != nullptr) {
    folders.emplace_back(wanted);
  } else {
    std::error_code failed;
    const fs::path here = fs::read_symlink("/proc/self/exe", failed).parent_path();
    folders = {here, here.parent_path() / "lib" / "convoy"};
  }
  Module module;
  for (const fs::path& folder : folders) {
    std::error_code failed;
    if (!fs::exists(folder / file, failed)) continue;
    module.path = folder / file;
    // RTLD_NOW: a missing function is told here and not in the middle of a step.
    module.handle = dlopen(module.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module.handle == nullptr) module.problem = dlerror();
    break;
  }
  return module;
}

void* module_symbol(const Module& module, const char* name) {
  return module.handle == nullptr ? nullptr : dlsym(module.handle, name);
}

}  // namespace convoy
