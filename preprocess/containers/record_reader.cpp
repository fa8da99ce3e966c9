// SPDX-License-Identifier: Apache-2.0
#include "preprocess/containers/record_reader.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <sstream>

#include "core/errors.hpp"
#include "core/text.hpp"

namespace convoy::preparation {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");
constexpr std::uint32_t magic = 0xced7230a;
/// The upper bits of a length: a record whose payload holds the magic is cut there into parts.
enum Part : std::uint32_t { whole = 0, first = 1, middle = 2, last = 3 };
constexpr std::uint32_t length_mask = (1U << 29) - 1;
constexpr std::size_t header_bytes = 24;  // flag, label, id, id2

template <class T>
T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteStream> stream, std::string what, Index offset)
    : stream_(std::move(stream)), what_(std::move(what)), position_(offset) {}

bool RecordReader::read_exactly(std::uint8_t* to, std::size_t bytes, bool may_end) {
  std::size_t used = 0;
  while (used < bytes) {
    const std::size_t got = stream_->read(to + used, bytes - used);
    if (got == 0 && used == 0 && may_end) return false;
    if (got == 0) {
      fail(Exit::data, "'{}' is truncated (a record ends early, at byte {}); fetch it again", what_,
           position_ + static_cast<Index>(used));
    }
    used += got;
  }
  position_ += static_cast<Index>(bytes);
  return true;
}

void RecordReader::append(std::size_t bytes) {
  constexpr std::size_t first_bytes = std::size_t{1} << 20;  // most records are smaller
  for (std::size_t left = bytes; left > 0;) {
    const std::size_t used = payload_.size(), piece = std::min(left, std::max(used, first_bytes));
    payload_.resize(used + piece);
    read_exactly(payload_.data() + used, piece, false);
    left -= piece;
  }
}

void RecordReader::pass_over(std::size_t bytes) {
  if (bytes == 0) return;
  stream_->skip(static_cast<Index>(bytes));
  position_ += static_cast<Index>(bytes);
}

bool RecordReader::next(ImageRecord& record, Index most_bytes) {
  constexpr std::size_t most_label_bytes = std::size_t{1} << 20;
  const std::size_t most_kept = header_bytes + most_label_bytes + static_cast<std::size_t>(most_bytes);
  std::size_t all_bytes = 0;  // of which payload_ holds the first
  record.begin = position_;
  payload_.clear();
  for (bool more = true, begun = false; more; begun = true) {
    std::array<std::uint8_t, 8> head;
    if (!read_exactly(head.data(), head.size(), !begun)) return false;
    const auto word = load<std::uint32_t>(head.data() + 4);
    const std::uint32_t part = word >> 29, bytes = word & length_mask;
    const bool in_place = begun ? part == middle || part == last : part == whole || part == first;
    if (load<std::uint32_t>(head.data()) != magic || !in_place) {
      fail(Exit::data, "'{}' is damaged or not a RecordIO file (no record at byte {}); fetch it again", what_,
           position_ - 8);
    }
    if (begun) {  // what the cut took out
      all_bytes += sizeof magic;
      if (all_bytes <= most_kept) {
        const std::size_t used = payload_.size();
        payload_.resize(used + sizeof magic);
        std::memcpy(payload_.data() + used, &magic, sizeof magic);
      }
    }
    const std::size_t kept = std::min<std::size_t>(bytes, most_kept - std::min(all_bytes, most_kept));
    append(kept);
    pass_over((std::size_t{bytes} + 3) / 4 * 4 - kept);
    all_bytes += bytes;
    more = part == first || part == middle;
  }
  const std::size_t labels = payload_.size() >= header_bytes ? load<std::uint32_t>(payload_.data()) : 0;
  if (payload_.size() < header_bytes || labels > (payload_.size() - header_bytes) / sizeof(float)) {
    fail(Exit::data, "'{}' is damaged (the record at byte {} has no image header); fetch it again", what_,
         record.begin);
  }
  record.labels.assign(1, load<float>(payload_.data() + 4));
  record.id = static_cast<Index>(load<std::uint64_t>(payload_.data() + 8));
  if (labels > 0) {
    record.labels.resize(labels);
    std::memcpy(record.labels.data(), payload_.data() + header_bytes, labels * sizeof(float));
  }
  const std::size_t before = header_bytes + labels * sizeof(float);
  record.image_bytes = static_cast<Index>(all_bytes - before);
  record.image.clear();
  if (record.image_bytes > most_bytes) return true;
  record.image.assign(payload_.begin() + static_cast<std::ptrdiff_t>(before), payload_.end());
  return true;
}

std::vector<Index> parse_record_index(const std::string& text, const std::string& what) {
  std::vector<Index> offsets;
  std::istringstream lines(plain_text(text, what, Exit::data));
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string id;
    Index offset = -1;
    if (!(words >> id)) continue;
    if (!(words >> offset) || offset < 0) {
      fail(Exit::data, "'{}', line {}: '{}' is not an id and an offset; make the index again", what, number, line);
    }
    offsets.push_back(offset);
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

}  // namespace convoy::preparation
