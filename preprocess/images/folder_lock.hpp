// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace convoy::preparation {

/// Keeps a second program that writes into the same folder out, as far as the file system can (where it knows no locks
/// nothing is kept out). Ends with the program, however that ends.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Makes the folder if need be. Throws Error(usage) where another program holds it, Error(data) where it can't be
  /// made.
  void take(const std::string& folder);

 private:
  int folder_ = -1;
};

}  // namespace convoy::preparation
