// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// A prefix of an S3 bucket, or of a compatible server's (path-style addresses).
std::unique_ptr<Store> open_s3_store(const Location& location, const TransferSpec& spec);

}  // namespace convoy::preparation
