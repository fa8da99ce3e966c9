// SPDX-License-Identifier: Apache-2.0
#include "interchange/published_file.hpp"

#include <filesystem>

#include "io/seal.hpp"

namespace convoy {

void write_published(const std::string& path, const std::function<void(File& file)>& write) {
  const std::string temporary = path + ".tmp";
  try {
    File file(temporary, File::Access::create);
    write(file);
    file.close();
    publish_file(temporary, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);  // gives a full disk its room back
    throw;
  }
}

}  // namespace convoy
