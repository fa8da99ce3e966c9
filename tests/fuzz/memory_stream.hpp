// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "core/errors.hpp"
#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// Bytes in memory, handed out in pieces of odd sizes: records must not rely on where pieces end.
class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  std::size_t read(std::uint8_t* to, std::size_t bytes) override {
    const std::size_t piece = std::min({bytes, rest_.size(), std::size_t{1} + rest_.size() % 4099});
    std::memcpy(to, rest_.data(), piece);
    rest_ = rest_.subspan(piece);
    return piece;
  }
  void skip(Index bytes) override {
    if (bytes < 0 || static_cast<std::size_t>(bytes) > rest_.size()) fail(Exit::data, "skip past the end");
    rest_ = rest_.subspan(static_cast<std::size_t>(bytes));
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace convoy::preparation
