// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"
#include "preprocess/images/images_spec.hpp"

namespace convoy::preparation {

/// Collective. Image files of any source to partitions: read and spilled once, ordered, written. Returns the code with
/// which all ranks leave; errors have been reported.
Exit prepare_images(Communicator& comm, const ImagesSpec& spec);

}  // namespace convoy::preparation
