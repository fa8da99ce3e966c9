// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "preprocess/images/sources.hpp"

namespace convoy::preparation {

/// All units of all pools in an order that ranks don't change.
struct Scan {
  std::vector<Unit> units;
  std::string digest;  ///< over names, sizes and versions of what was found: tells a source that has changed
  Index objects = 0;   ///< files and archives
};

/// Collective. Rank 0 lists, the ranks look into what it found. Throws through the agreed code.
Scan scan_pools(Communicator& comm, const ImagesSpec& spec, std::vector<OpenPool>& pools, const ClassList& classes);

/// Image files below a folder, as paths from it, sorted.
std::vector<std::string> list_files(Store& store, const std::string& folder,
                                    const std::vector<std::string>& extensions);
/// By the extension, whatever its case; hidden files are none.
bool is_image_name(const std::string& name, const std::vector<std::string>& extensions);

}  // namespace convoy::preparation
