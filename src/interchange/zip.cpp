// SPDX-License-Identifier: Apache-2.0
#include "interchange/zip.hpp"

#include <isa-l.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/errors.hpp"

namespace convoy {
namespace {

static_assert(std::endian::native == std::endian::little, "zip's numbers are little endian");

// PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16.
constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50, end_signature = 0x06054b50;
constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22, longest_comment = 65535;
constexpr std::uint64_t data_alignment = 64, largest = 0xFFFFFFFF;
constexpr std::size_t most_entries = 65000;
constexpr std::uint16_t pad_field = 0x4246;  // "FB", as PyTorch pads

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class... T>
std::string joined(T... numbers) {
  std::string bytes;
  const auto append = [&](auto number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  (append(numbers), ...);
  return bytes;
}

std::string read_text(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  file.read_at(text.data(), text.size(), offset);
  return text;
}

[[noreturn]] void fail_damaged(const File& file, const std::string& what) {
  fail(Exit::data, "'{}' is a damaged zip archive ({}); copy or download it again", file.path(), what);
}

/// The record at the end of the archive, which says where its directory lies.
std::string end_record(const File& file) {
  const std::uint64_t size = file.size();
  if (size < end_bytes) fail_damaged(file, "it is too short");
  const std::uint64_t tail = std::min<std::uint64_t>(size, end_bytes + longest_comment);
  const std::string text = read_text(file, size - tail, tail);
  for (std::size_t at = text.size() - end_bytes + 1; at-- > 0;) {
    if (number_at<std::uint32_t>(text, at) != end_signature) continue;
    if (at + end_bytes + number_at<std::uint16_t>(text, at + 20) == text.size()) return text.substr(at, end_bytes);
  }
  fail_damaged(file, "its directory is missing: the file is truncated");
}

}  // namespace

std::uint32_t zip_crc(std::span<const std::byte> data, std::uint32_t crc) {
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

std::vector<ZipEntry> read_zip(const File& file) {
  const std::string end = end_record(file);
  const std::size_t count = number_at<std::uint16_t>(end, 10);
  const std::uint64_t directory_size = number_at<std::uint32_t>(end, 12), begin = number_at<std::uint32_t>(end, 16);
  if (count > most_entries || begin == largest || directory_size == largest)
    fail(Exit::data, "'{}' is a zip archive of more than 4 GB or {} entries; save the state dict alone", file.path(),
         most_entries);
  if (begin + directory_size > file.size()) fail_damaged(file, "its directory lies outside the file");
  const std::string directory = read_text(file, begin, directory_size);
  std::vector<ZipEntry> entries;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (directory.size() - at < central_bytes || number_at<std::uint32_t>(directory, at) != central_signature)
      fail_damaged(file, "its directory is cut");
    const std::size_t name_bytes = number_at<std::uint16_t>(directory, at + 28),
                      rest = std::size_t{number_at<std::uint16_t>(directory, at + 30)} +
                             number_at<std::uint16_t>(directory, at + 32);
    if (directory.size() - at - central_bytes < name_bytes + rest) fail_damaged(file, "its directory is cut");
    ZipEntry entry{.name = directory.substr(at + central_bytes, name_bytes)};
    const auto flags = number_at<std::uint16_t>(directory, at + 8),
               method = number_at<std::uint16_t>(directory, at + 10);
    entry.crc = number_at<std::uint32_t>(directory, at + 16);
    entry.bytes = number_at<std::uint32_t>(directory, at + 20);
    const std::uint64_t whole = number_at<std::uint32_t>(directory, at + 24),
                        local = number_at<std::uint32_t>(directory, at + 42);
    at += central_bytes + name_bytes + rest;
    entry.plain = method == 0 && (flags & 1) == 0 && whole == entry.bytes;
    if (local > begin || begin - local < local_bytes) fail_damaged(file, "an entry lies outside the file");
    const std::string header = read_text(file, local, local_bytes);
    if (number_at<std::uint32_t>(header, 0) != local_signature) fail_damaged(file, "an entry has no header");
    entry.offset = local + local_bytes + number_at<std::uint16_t>(header, 26) + number_at<std::uint16_t>(header, 28);
    if (entry.offset > begin || begin - entry.offset < entry.bytes)
      fail_damaged(file, "an entry lies outside the file");
    entries.push_back(std::move(entry));
  }
  return entries;
}

void ZipWriter::write(const std::string& bytes) {
  file_.write_at(bytes.data(), bytes.size(), at_);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> data) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  // The padding is an extra field of at least its own 4 bytes.
  const std::uint64_t unpadded = at_ + local_bytes + name.size() + 4,
                      pad = (data_alignment - unpadded % data_alignment) % data_alignment;
  if (unpadded + pad + data.size() >= largest || entries_ == most_entries)
    fail(Exit::data, "'{}' would be larger than 4 GB, which this archive can't hold; write safetensors", file_.path());
  const auto bytes = static_cast<U32>(data.size());
  const U32 crc = zip_crc(data), first_of_1980 = 0x00210000;
  // From `version needed` on; both headers have this part.
  const std::string common =
      joined(U16{20}, U16{0x0800}, U16{0}, first_of_1980, crc, bytes, bytes, static_cast<U16>(name.size()));
  directory_ += joined(central_signature, U16{20}) + common +
                joined(U16{0}, U16{0}, U16{0}, U16{0}, U32{0}, static_cast<U32>(at_)) + name;
  write(joined(local_signature) + common + joined(static_cast<U16>(pad + 4)) + name +
        joined(pad_field, static_cast<U16>(pad)) + std::string(pad, 'Z'));
  file_.write_at(data.data(), data.size(), at_);
  at_ += data.size();
  ++entries_;
}

void ZipWriter::finish() {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  const auto begin = static_cast<U32>(at_), bytes = static_cast<U32>(directory_.size());
  const auto count = static_cast<U16>(entries_);
  write(directory_);
  write(joined(end_signature, U16{0}, U16{0}, count, count, bytes, begin, U16{0}));
}

}  // namespace convoy
