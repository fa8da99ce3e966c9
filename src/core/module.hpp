// SPDX-License-Identifier: Apache-2.0
// Parts of the program that lie in a library of their own, so that a machine without what they need can start it.
#pragma once
#include <string>

namespace convoy {

struct Module {
  void* handle = nullptr;  ///< of dlopen; open until the program ends
  std::string path;        ///< where it was found; empty: nowhere
  std::string problem;     ///< the loader's words where it could not be opened
};

/// Looks for `file` in $CONVOY_MODULE_DIR where that is set, else beside the program and in ../lib/convoy, and opens
/// it.
Module open_module(const std::string& file);

/// Null where the module has no such symbol.
void* module_symbol(const Module& module, const char* name);

}  // namespace convoy
