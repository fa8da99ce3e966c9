// SPDX-License-Identifier: Apache-2.0
#include "preprocess/archive.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/errors.hpp"

namespace convoy::preparation {
namespace {

constexpr std::size_t block_bytes = 512;

/// A byte stream of a plain or gzip file (zlib reads both).
class Stream {
 public:
  explicit Stream(const std::string& path) : path_(path) {
    std::error_code reason;
    if (std::filesystem::is_other(path, reason))
      fail(Exit::data, "cannot read '{}' (it is a pipe, socket or device); give a file", path);
    errno = 0;
    file_ = gzopen(path.c_str(), "rb");
    if (file_ == nullptr) {
      fail(Exit::data, "cannot open '{}' ({}); check --source", path,
           errno != 0 ? std::strerror(errno) : "out of memory");
    }
    gzbuffer(file_, 1U << 18);
  }
  ~Stream() { gzclose_r(file_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Fewer than `bytes` only at the end of the file.
  std::size_t read(void* to, std::size_t bytes) {
    auto* p = static_cast<char*>(to);
    std::size_t done = 0;
    while (done < bytes) {
      const auto piece = static_cast<unsigned>(std::min<std::size_t>(bytes - done, std::size_t{1} << 30));
      const int got = gzread(file_, p + done, piece);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    int code = Z_OK;
    const char* reason = gzerror(file_, &code);
    if (code == Z_BUF_ERROR) fail(Exit::data, "'{}' is truncated (its gzip data ends early); fetch it again", path_);
    if (code == Z_ERRNO) fail(Exit::data, "cannot read '{}' ({})", path_, std::strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END) fail(Exit::data, "'{}' is damaged ({}); fetch it again", path_, reason);
    return done;
  }

 private:
  std::string path_;
  gzFile file_ = nullptr;
};

/// POSIX.1-1988 ustar: text fields end at a null byte or at their full length, numbers are octal.
struct TarHeader {
  std::array<char, block_bytes> raw{};

  std::string text(std::size_t at, std::size_t length) const {
    const auto* begin = raw.data() + at;
    return {begin, std::find(begin, begin + length, '\0')};
  }
  std::size_t octal(std::size_t at, std::size_t length) const {
    std::size_t value = 0;
    for (const char c : text(at, length)) {
      if (c >= '0' && c <= '7') value = value * 8 + static_cast<std::size_t>(c - '0');
    }
    return value;
  }
  std::size_t size() const { return octal(124, 12); }
  bool regular() const { return raw[156] == '0' || raw[156] == '\0'; }
  bool blank() const {
    return std::all_of(raw.begin(), raw.end(), [](char c) { return c == '\0'; });
  }
  /// The sum of all bytes, the checksum's own counted as spaces.
  bool intact() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      sum += i >= 148 && i < 156 ? std::size_t{' '} : static_cast<unsigned char>(raw[i]);
    }
    return sum == octal(148, 8);
  }
  std::string name() const {
    const std::string path = text(0, 100);
    return path.substr(path.rfind('/') + 1);  // npos + 1 = 0
  }
};

[[noreturn]] void fail_truncated(const std::string& path) {
  fail(Exit::data, "'{}' is truncated (the tar archive ends early); fetch it again", path);
}

}  // namespace

std::vector<std::uint8_t> read_whole(const std::string& path) {
  Stream stream(path);
  std::vector<std::uint8_t> bytes;
  std::size_t used = 0;
  do {
    bytes.resize(std::max<std::size_t>(bytes.size() * 2, std::size_t{1} << 20));
    used += stream.read(bytes.data() + used, bytes.size() - used);
  } while (used == bytes.size());
  bytes.resize(used);
  return bytes;
}

void read_archive(const std::string& path, const std::function<bool(const std::string&)>& wanted,
                  const std::function<void(const std::string&, std::vector<std::uint8_t>)>& take) {
  Stream stream(path);
  TarHeader header;
  while (true) {
    if (stream.read(header.raw.data(), block_bytes) < block_bytes) fail_truncated(path);
    if (header.blank()) break;
    if (!header.intact()) fail(Exit::data, "'{}' is not a tar archive, or damaged; check --source", path);
    const std::size_t padded = (header.size() + block_bytes - 1) / block_bytes * block_bytes;
    if (header.regular() && wanted(header.name())) {
      std::vector<std::uint8_t> bytes(padded);
      if (stream.read(bytes.data(), padded) < padded) fail_truncated(path);
      bytes.resize(header.size());
      take(header.name(), std::move(bytes));
      continue;
    }
    std::array<char, block_bytes> skipped;
    for (std::size_t done = 0; done < padded; done += block_bytes) {
      if (stream.read(skipped.data(), block_bytes) < block_bytes) fail_truncated(path);
    }
  }
  std::array<char, block_bytes> rest;
  while (stream.read(rest.data(), rest.size()) == rest.size()) {
  }
}

}  // namespace convoy::preparation
