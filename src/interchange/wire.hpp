// SPDX-License-Identifier: Apache-2.0
// Messages of protocol buffers, field by field, read from a file in place: bytes of tensors are passed over.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "io/file.hpp"

namespace convoy {

/// The part of a file around the byte that was read last.
class FileWindow {
 public:
  explicit FileWindow(const File& file) : file_(file), size_(file.size()) {}
  const File& file() const { return file_; }
  std::uint64_t size() const { return size_; }
  std::uint8_t at(std::uint64_t offset);
  std::string text(std::uint64_t begin, std::uint64_t end) const;

 private:
  const File& file_;
  std::uint64_t size_, begin_ = 0, count_ = 0;
  std::array<std::uint8_t, 1 << 14> bytes_{};
};

struct WireField {
  enum class Form : std::uint8_t { number = 0, eight = 1, bytes = 2, four = 5 };
  std::uint32_t tag = 0;
  Form form = Form::number;
  std::uint64_t number = 0;          ///< number, eight, four: the bits
  std::uint64_t begin = 0, end = 0;  ///< bytes: in the file
};

class WireMessage {
 public:
  /// The whole file, or the bytes of a field. Throws Error(data) if the bytes are none of a message.
  explicit WireMessage(FileWindow& window) : window_(window), end_(window.size()) {}
  WireMessage(FileWindow& window, const WireField& field);
  std::optional<WireField> next();
  bool is_at_end() const { return at_ == end_; }
  std::uint64_t next_number();

 private:
  [[noreturn]] void fail_damaged() const;
  std::uint64_t next_bits(int bytes);

  FileWindow& window_;
  std::uint64_t at_ = 0, end_;
};

}  // namespace convoy
