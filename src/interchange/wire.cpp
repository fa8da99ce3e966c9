// SPDX-License-Identifier: Apache-2.0
#include "interchange/wire.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy {

std::uint8_t FileWindow::at(std::uint64_t offset) {
  if (offset < begin_ || offset >= begin_ + count_) {
    begin_ = offset;
    count_ = std::min<std::uint64_t>(bytes_.size(), size_ - offset);
    file_.read_at(bytes_.data(), count_, begin_);
  }
  return bytes_[offset - begin_];
}

std::string FileWindow::text(std::uint64_t begin, std::uint64_t end) const {
  std::string text(end - begin, '\0');
  file_.read_at(text.data(), text.size(), begin);
  return text;
}

WireMessage::WireMessage(FileWindow& window, const WireField& field)
    : window_(window), at_(field.begin), end_(field.end) {
  if (field.form != WireField::Form::bytes) fail_damaged();
}

void WireMessage::fail_damaged() const {
  fail(Exit::data, "'{}' is no whole ONNX file (damaged at byte {}); copy or export it again", window_.file().path(),
       at_);
}

std::uint64_t WireMessage::next_number() {
  std::uint64_t number = 0;
  constexpr unsigned bits = 64, per_byte = 7;
  for (unsigned shift = 0; shift < bits; shift += per_byte) {
    if (at_ >= end_) fail_damaged();
    const std::uint8_t byte = window_.at(at_++);
    number |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80U) return number;
  }
  fail_damaged();
}

std::uint64_t WireMessage::next_bits(int bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < bytes; ++i) {
    if (at_ >= end_) fail_damaged();
    bits |= static_cast<std::uint64_t>(window_.at(at_++)) << (8U * static_cast<unsigned>(i));
  }
  return bits;
}

std::optional<WireField> WireMessage::next() {
  if (at_ >= end_) return std::nullopt;
  const std::uint64_t key = next_number();
  WireField field{.tag = static_cast<std::uint32_t>(key >> 3U), .form = static_cast<WireField::Form>(key & 7U)};
  switch (field.form) {
    case WireField::Form::number:
      field.number = next_number();
      return field;
    case WireField::Form::eight:
      field.number = next_bits(8);
      return field;
    case WireField::Form::four:
      field.number = next_bits(4);
      return field;
    case WireField::Form::bytes: {
      const std::uint64_t length = next_number();
      if (length > end_ - at_) fail_damaged();
      field.begin = at_;
      at_ += length;
      field.end = at_;
      return field;
    }
  }
  fail_damaged();
}

}  // namespace convoy
