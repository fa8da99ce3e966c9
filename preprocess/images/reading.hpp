// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "preprocess/images/images_spec.hpp"
#include "preprocess/images/sources.hpp"
#include "preprocess/spill/spiller.hpp"

namespace convoy::preparation {

/// Collective. Reads what is left of all units, dealt over the ranks, into runs in `folder`; rank 0 tells how far all
/// have come. Throws Leave where a rank failed or somebody asked to stop: what was read by then is kept.
void read_images(Communicator& comm, const ImagesSpec& spec, std::vector<OpenPool>& pools,
                 const std::vector<Unit>& units, const std::vector<Assignment>& left, const std::string& folder,
                 std::atomic<bool>& cancel);

}  // namespace convoy::preparation
