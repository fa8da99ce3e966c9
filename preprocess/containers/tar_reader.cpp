// SPDX-License-Identifier: Apache-2.0
#include "preprocess/containers/tar_reader.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>

#include "core/errors.hpp"

namespace convoy::preparation {
namespace {

constexpr Index block_bytes = 512;
constexpr std::size_t piece_bytes = std::size_t{1} << 17;
constexpr std::size_t first_bytes = std::size_t{1} << 20;  ///< most members are smaller
constexpr std::array compressed_suffixes{".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.lz4"};

/// The part `.tar-000001` of a name; npos: it ends otherwise.
std::size_t find_numbered_suffix(const std::string& name) {
  const auto digits = name.find_last_not_of("0123456789") + 1;
  if (digits < 5 || digits == name.size() || (name[digits - 1] != '-' && name[digits - 1] != '.')) return name.npos;
  return name.compare(digits - 5, 4, ".tar") == 0 ? digits - 5 : name.npos;
}

}  // namespace

bool is_tar_name(const std::string& name) {
  return name.ends_with(".tar") || compression_of(name) != Compression::none ||
         find_numbered_suffix(name) != std::string::npos;
}

Compression compression_of(const std::string& name) {
  for (const char* suffix : compressed_suffixes) {
    if (name.ends_with(suffix)) return Compression::compressed;
  }
  return Compression::none;
}

std::string tar_stem(const std::string& name) {
  const std::string base = base_name(name);
  if (const auto at = find_numbered_suffix(base); at != std::string::npos)
    return base.substr(0, at) + base.substr(at + 4);
  for (const std::string_view suffix : compressed_suffixes) {
    if (base.ends_with(suffix)) return base.substr(0, base.size() - suffix.size());
  }
  return base.substr(0, base.ends_with(".tar") ? base.size() - 4 : base.npos);
}

struct TarReader::State {
  std::unique_ptr<ByteStream> stream;
  std::string what;
  Index offset = 0;
  archive* reader = nullptr;
  archive_entry* entry = nullptr;
  std::vector<std::uint8_t> piece;
  std::exception_ptr error;  ///< thrown by the stream inside a callback
  bool is_empty = true;      ///< no byte has come
  Index member_bytes = 0, data_begin = 0;

  ~State() { archive_read_free(reader); }

  static la_ssize_t on_read(archive*, void* self, const void** data) {
    State& s = *static_cast<State*>(self);
    if (s.error) return ARCHIVE_FATAL;
    *data = s.piece.data();
    try {
      const std::size_t got = s.stream->read(s.piece.data(), s.piece.size());
      s.is_empty = s.is_empty && got == 0;
      return static_cast<la_ssize_t>(got);
    } catch (...) {  // libarchive is C: exceptions wait in the state
      s.error = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }
  static la_int64_t on_skip(archive*, void* self, la_int64_t bytes) {
    State& s = *static_cast<State*>(self);
    try {
      s.stream->skip(bytes);
      return bytes;
    } catch (...) {
      s.error = std::current_exception();
      return 0;  // an error code would be taken for a number of bytes, for ever; the read that follows fails
    }
  }

  [[noreturn]] void fail_now() {
    if (error) std::rethrow_exception(error);
    if (is_empty) fail(Exit::data, "'{}' is truncated (it is empty); fetch it again", what);
    const char* reason = archive_error_string(reader);
    const std::string text = reason != nullptr ? reason : "no reason given by libarchive";
    if (text.find("runcated") != std::string::npos) {
      fail(Exit::data, "'{}' is truncated ({}, at byte {}); fetch it again", what, text, position());
    }
    fail(Exit::data, "'{}' is damaged or not a tar archive ({}, at byte {}); check the source", what, text, position());
  }

  Index position() const { return offset + archive_filter_bytes(reader, 0); }
};

TarReader::TarReader(std::unique_ptr<ByteStream> stream, std::string what, Compression compression, Index offset)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.stream = std::move(stream);
  s.what = std::move(what);
  s.offset = offset;
  s.piece.resize(piece_bytes);
  s.reader = archive_read_new();
  if (s.reader == nullptr) fail(Exit::device, "cannot read '{}' (libarchive found no memory)", s.what);
  archive_read_support_format_tar(s.reader);
  archive_read_set_option(s.reader, "tar", "read_concatenated_archives", "1");
  if (compression == Compression::compressed) archive_read_support_filter_all(s.reader);
  archive_read_set_callback_data(s.reader, &s);
  archive_read_set_read_callback(s.reader, State::on_read);
  archive_read_set_skip_callback(s.reader, State::on_skip);
  if (archive_read_open1(s.reader) != ARCHIVE_OK) s.fail_now();
}

TarReader::~TarReader() = default;

bool TarReader::next(TarMember& member, Members shown) {
  State& s = *state_;
  while (true) {
    const int result = archive_read_next_header(s.reader, &s.entry);
    if (result == ARCHIVE_EOF) {
      // The end marker has been read if anything has been read where the next header would be.
      if (s.position() <= s.offset + archive_read_header_position(s.reader)) {
        fail(Exit::data, "'{}' is truncated (it has no end marker, at byte {}); fetch it again", s.what, s.position());
      }
      return false;
    }
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) s.fail_now();
    const char* link = archive_entry_hardlink(s.entry);
    if (link == nullptr && archive_entry_filetype(s.entry) == AE_IFLNK) link = archive_entry_symlink(s.entry);
    member.folder = link == nullptr && archive_entry_filetype(s.entry) == AE_IFDIR;
    const bool file = link == nullptr && archive_entry_filetype(s.entry) == AE_IFREG;
    if (!file && (member.folder ? shown != Members::and_folders : link == nullptr || shown == Members::files)) continue;
    const char* name = archive_entry_pathname(s.entry);
    if (name == nullptr) fail(Exit::data, "'{}' has a member without a name, at byte {}", s.what, s.position());
    member.name = plain_path(name);
    if (member.name.empty()) continue;
    member.link = link != nullptr ? link : "";
    member.target.clear();
    if (link != nullptr) {
      const bool hard = archive_entry_hardlink(s.entry) != nullptr;
      member.target = plain_path(hard ? member.link : join_names(folder_name(member.name), member.link));
    }
    member.bytes = file ? archive_entry_size(s.entry) : 0;
    member.begin = s.offset + archive_read_header_position(s.reader);
    s.member_bytes = member.bytes;
    s.data_begin = s.position();
    return true;
  }
}

bool TarReader::read(std::vector<std::uint8_t>& to, Index most_bytes) {
  State& s = *state_;
  if (s.member_bytes > most_bytes) return false;
  const auto whole = static_cast<std::size_t>(s.member_bytes);
  to.clear();
  for (std::size_t used = 0; used < whole;) {
    if (used == to.size()) to.resize(std::min(whole, used + std::max(used, first_bytes)));
    const la_ssize_t got = archive_read_data(s.reader, to.data() + used, to.size() - used);
    if (got < 0) s.fail_now();
    if (got == 0) fail(Exit::data, "'{}' is truncated (at byte {}); fetch it again", s.what, s.position());
    used += static_cast<std::size_t>(got);
  }
  return true;
}

void TarReader::read_rest() {
  State& s = *state_;
  while (s.stream->read(s.piece.data(), s.piece.size()) > 0) {
  }
}

Index TarReader::next_begin() const {
  return (state_->data_begin + state_->member_bytes + block_bytes - 1) / block_bytes * block_bytes;
}

Index TarReader::data_begin() const { return state_->data_begin; }

}  // namespace convoy::preparation
