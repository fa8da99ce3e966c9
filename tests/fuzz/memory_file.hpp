// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

namespace convoy {

/// A path in memory, where thousands of files are written; removed at the end.
class MemoryFile {
 public:
  explicit MemoryFile(std::string name) : name_(std::move(name)) {
    std::string pattern = "/dev/shm/convoy-fuzz-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
  }
  ~MemoryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return folder_ + "/" + name_; }

 private:
  std::string folder_, name_;
};

}  // namespace convoy
