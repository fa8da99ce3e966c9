// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/store.hpp"

#include "core/errors.hpp"
#include "preprocess/transport/file_store.hpp"
#include "preprocess/transport/http_store.hpp"
#include "preprocess/transport/s3_store.hpp"

namespace convoy::preparation {

std::unique_ptr<Store> open_store(const Location& location, const TransferSpec& spec) {
  switch (location.scheme) {
    case Scheme::file:
      return open_file_store(location.path);
    case Scheme::http:
      return open_http_store(location, spec);
    case Scheme::s3:
      return open_s3_store(location, spec);
  }
  fail(Exit::internal, "unknown scheme of a location");
}

std::string read_object(Store& store, const std::string& name, Index most_bytes) {
  constexpr std::size_t piece = std::size_t{1} << 16;
  const auto stream = store.open(name);
  std::string text;
  for (std::size_t used = 0;;) {
    text.resize(used + piece);
    const std::size_t got = stream->read(reinterpret_cast<std::uint8_t*>(text.data()) + used, piece);
    used += got;
    if (got == 0 || static_cast<Index>(used) > most_bytes) {
      text.resize(used);
      break;
    }
  }
  if (static_cast<Index>(text.size()) > most_bytes) {
    fail(Exit::data, "'{}' has more than {} bytes; is it what it should be?", store.address(name), most_bytes);
  }
  return text;
}

}  // namespace convoy::preparation
