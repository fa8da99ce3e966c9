// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// A folder of a web server; it is listed through its index page (nginx: autoindex).
std::unique_ptr<Store> open_http_store(const Location& location, const TransferSpec& spec);

/// Files and folders that an index page links to.
Listing parse_index_page(const std::string& html);

}  // namespace convoy::preparation
