// SPDX-License-Identifier: Apache-2.0
#include "io/seal.hpp"

#include <isa-l.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/errors.hpp"
#include "io/file.hpp"
#include "io/file_kind.hpp"

namespace convoy {
namespace {

static_assert(std::endian::native == std::endian::little, "the seal is stored little-endian");

using Block = std::array<unsigned char, seal_bytes>;
constexpr std::array<char, 8> magic{'C', 'O', 'N', 'V', 'O', 'Y', 'S', 'L'};
constexpr std::uint32_t seal_version = 1;
// Byte offsets in the user block; what follows is zero.
constexpr std::size_t at_version = 8, at_crc = 12, at_file_bytes = 16, at_samples_offset = 24, at_samples_bytes = 32,
                      at_tag = 40, at_head_crc = 48;

template <class T>
T load(const Block& block, std::size_t at) {
  T value;
  std::memcpy(&value, block.data() + at, sizeof value);
  return value;
}

template <class T>
void store(Block& block, std::size_t at, T value) {
  std::memcpy(block.data() + at, &value, sizeof value);
}

constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;
/// Far enough ahead of a reader to keep a disk busy.
constexpr std::uint64_t ahead_bytes = std::uint64_t{1} << 24;

std::uint32_t crc_of_range(const File& file, std::uint64_t begin, std::uint64_t end, std::uint32_t crc) {
  std::vector<unsigned char> buffer(std::min<std::uint64_t>(end - begin, piece_bytes));
  while (begin < end) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, buffer.size()));
    file.read_at(buffer.data(), piece, begin);
    crc = crc32c(buffer.data(), piece, crc);
    begin += piece;
  }
  return crc;
}

// The block's crc field counts as zero.
std::uint32_t crc_of_file(const File& file, Block block) {
  store<std::uint32_t>(block, at_crc, 0);
  const std::uint32_t crc = crc32c(block.data(), block.size());
  const auto file_bytes = load<std::uint64_t>(block, at_file_bytes);
  const auto samples_bytes = load<std::uint64_t>(block, at_samples_bytes);
  if (samples_bytes == 0) return crc_of_range(file, seal_bytes, file_bytes, crc);
  const auto samples_offset = load<std::uint64_t>(block, at_samples_offset);
  return crc_of_range(file, samples_offset + samples_bytes, file_bytes,
                      crc_of_range(file, seal_bytes, samples_offset, crc));
}

/// The CRC of what stands before it, crc counting as zero: it is not known yet when the head is.
std::uint32_t crc_of_head(Block block) {
  store<std::uint32_t>(block, at_crc, 0);
  return crc32c(block.data(), at_head_crc);
}

/// The user block of a file, whose first bytes are a seal of this version.
Block read_block(const File& file, std::uint64_t actual_bytes) {
  const std::string& path = file.path();
  if (actual_bytes == 0) fail(Exit::data, "'{}' is empty", path);
  Block block{};
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(actual_bytes, block.size()));
  file.read_at(block.data(), there, 0);
  const std::string kind = foreign_kind({reinterpret_cast<const char*>(block.data()), there});
  if (!kind.empty()) fail(Exit::data, "'{}' is {}, not a file that Convoy wrote", path, kind);
  if (actual_bytes < seal_bytes) {
    fail(Exit::data, "'{}' is truncated ({} bytes, the seal alone has {})", path, actual_bytes, seal_bytes);
  }
  if (std::memcmp(block.data(), magic.data(), magic.size()) != 0) {
    fail(Exit::data, "'{}' is not sealed (its first bytes are not '{}')", path,
         std::string(magic.begin(), magic.end()));
  }
  if (const auto version = load<std::uint32_t>(block, at_version); version != seal_version) {
    fail(Exit::data, "'{}' has seal version {} (this program knows {})", path, version, seal_version);
  }
  return block;
}

void require_length(const std::string& path, std::uint64_t sealed, std::uint64_t actual) {
  if (sealed == actual) return;
  fail(Exit::data, "'{}' is {} ({} bytes, sealed with {})", path, actual < sealed ? "truncated" : "too long", actual,
       sealed);
}

bool fits(std::uint64_t file_bytes, std::uint64_t samples_offset, std::uint64_t samples_bytes) {
  if (samples_bytes == 0) return samples_offset == 0;
  return samples_offset >= seal_bytes && samples_offset <= file_bytes && samples_bytes <= file_bytes - samples_offset;
}

Block make_block(const Seal& seal, std::uint64_t tag) {
  Block block{};
  std::copy(magic.begin(), magic.end(), block.begin());
  store(block, at_version, seal_version);
  store(block, at_file_bytes, seal.file_bytes);
  store(block, at_samples_offset, seal.samples_offset);
  store(block, at_samples_bytes, seal.samples_bytes);
  store(block, at_tag, tag);
  if (tag != 0) store(block, at_head_crc, crc_of_head(block));
  return block;
}

/// What a block says of a file of that length; the CRC is still to be checked.
Seal read_seal(const Block& block, const std::string& path, std::uint64_t actual_bytes) {
  const Seal seal{load<std::uint64_t>(block, at_file_bytes), load<std::uint64_t>(block, at_samples_offset),
                  load<std::uint64_t>(block, at_samples_bytes), load<std::uint32_t>(block, at_crc)};
  require_length(path, seal.file_bytes, actual_bytes);
  if (!fits(seal.file_bytes, seal.samples_offset, seal.samples_bytes)) {
    fail(Exit::data, "'{}' is damaged (its seal places {} bytes of samples at {}, outside the file's {} bytes)", path,
         seal.samples_bytes, seal.samples_offset, seal.file_bytes);
  }
  return seal;
}

/// The file's bytes behind its user block in order, a piece at a time: body(offset, bytes, memory), where memory is
/// null but for known bytes.
template <class Body>
void for_each_piece(std::uint64_t file_bytes, std::span<const KnownBytes> known, const Body& body) {
  std::uint64_t at = seal_bytes;
  const auto walk = [&](std::uint64_t end, const std::byte* memory) {
    while (at < end) {
      const std::uint64_t bytes = std::min(end - at, piece_bytes);
      body(at, static_cast<std::size_t>(bytes), memory);
      at += bytes;
      if (memory != nullptr) memory += bytes;
    }
  };
  for (const KnownBytes& range : known) {
    require(range.offset >= at && range.bytes.size() <= file_bytes - range.offset,
            "known bytes overlap, or lie outside");
    walk(range.offset, nullptr);
    walk(range.offset + range.bytes.size(), range.bytes.data());
  }
  walk(file_bytes, nullptr);
}

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t crc) {
  // crc32_iscsi takes an int length, is not const correct, and works on the uninverted register.
  constexpr std::size_t largest_piece = std::size_t{1} << 30;
  auto* p = const_cast<unsigned char*>(static_cast<const unsigned char*>(data));
  std::uint32_t state = ~crc;
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, largest_piece);
    state = crc32_iscsi(p, static_cast<int>(piece), state);
    p += piece;
    bytes -= piece;
  }
  return ~state;
}

void seal_file(const std::string& path, std::uint64_t samples_offset, std::uint64_t samples_bytes, std::uint64_t tag) {
  File file(path, File::Access::update);
  const std::uint64_t file_bytes = file.size();
  require(file_bytes >= seal_bytes && fits(file_bytes, samples_offset, samples_bytes),
          "seal_file: samples outside file");
  Block block = make_block({file_bytes, samples_offset, samples_bytes}, tag);
  store(block, at_crc, crc_of_file(file, block));
  file.write_at(block.data(), block.size(), 0);
  file.sync();
}

Seal check_seal(const std::string& path) {
  const File file(path, File::Access::read);
  const std::uint64_t actual_bytes = file.size();
  const Block block = read_block(file, actual_bytes);
  const Seal seal = read_seal(block, path, actual_bytes);
  if (const std::uint32_t crc = crc_of_file(file, block); crc != seal.crc) {
    fail(Exit::data, "'{}' is damaged (CRC32C {:08x}, sealed with {:08x})", path, crc, seal.crc);
  }
  return seal;
}

void write_and_seal(const std::string& path, std::span<const KnownBytes> known, std::uint64_t tag) {
  File file(path, File::Access::update);
  const std::uint64_t file_bytes = file.size();
  require(file_bytes >= seal_bytes, "write_and_seal: no room for a seal");
  Block block = make_block({.file_bytes = file_bytes}, tag);
  std::uint32_t crc = crc32c(block.data(), block.size());
  std::vector<std::byte> buffer(piece_bytes);
  for_each_piece(file_bytes, known, [&](std::uint64_t offset, std::size_t bytes, const std::byte* memory) {
    if (memory == nullptr) {
      file.read_at(buffer.data(), bytes, offset);
      crc = crc32c(buffer.data(), bytes, crc);
      return;
    }
    crc = crc32c(memory, bytes, crc);
    file.write_at(memory, bytes, offset);
  });
  store(block, at_crc, crc);
  file.write_at(block.data(), block.size(), 0);
  file.sync();
}

void check_written(const std::string& path, std::span<const KnownBytes> known) {
  const File file(path, File::Access::read);
  const std::uint64_t file_bytes = file.size();
  Block block = read_block(file, file_bytes);
  const Seal seal = read_seal(block, path, file_bytes);
  store<std::uint32_t>(block, at_crc, 0);
  std::uint32_t crc = crc32c(block.data(), block.size());
  std::vector<std::byte> buffer(piece_bytes);
  std::uint64_t asked_for = 0;
  bool same = true;
  for_each_piece(file_bytes, known, [&](std::uint64_t offset, std::size_t bytes, const std::byte* memory) {
    if (offset + ahead_bytes > asked_for) {
      file.read_ahead(asked_for, 2 * ahead_bytes);
      asked_for += 2 * ahead_bytes;
    }
    file.read_at(buffer.data(), bytes, offset);
    crc = crc32c(buffer.data(), bytes, crc);
    same = same && (memory == nullptr || std::memcmp(buffer.data(), memory, bytes) == 0);
  });
  if (!same || crc != seal.crc)
    fail(Exit::data, "'{}' reads back other bytes than were written (storage fault); use another disk", path);
}

std::uint64_t peek_tag(const std::string& path) {
  const File file(path, File::Access::read);
  const std::uint64_t actual_bytes = file.size();
  const Block block = read_block(file, actual_bytes);
  const auto tag = load<std::uint64_t>(block, at_tag);
  if (tag == 0 || load<std::uint32_t>(block, at_head_crc) != crc_of_head(block)) {
    fail(Exit::data, "'{}' is damaged (its first bytes don't fit their CRC32C)", path);
  }
  require_length(path, load<std::uint64_t>(block, at_file_bytes), actual_bytes);
  return tag;
}

void publish_file(const std::string& temporary, const std::string& path) {
  File(temporary, File::Access::update).sync();
  rename_file(temporary, path);
  sync_folder(std::filesystem::path(path).parent_path().string());
}

void publish_text(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  try {
    {
      File file(temporary, File::Access::create);
      file.write_at(text.data(), text.size(), 0);
    }
    publish_file(temporary, path);
  } catch (...) {
    std::error_code ignored;  // what matters is the first error
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

}  // namespace convoy
