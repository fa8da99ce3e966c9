// SPDX-License-Identifier: Apache-2.0
#include "preprocess/containers/gzip_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/errors.hpp"

namespace convoy::preparation {
namespace {

class GzipFile final : public ByteStream {
 public:
  explicit GzipFile(const std::string& path) : path_(path) {
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
  ~GzipFile() override { gzclose_r(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  std::size_t read(std::uint8_t* to, std::size_t bytes) override {
    const int got = gzread(file_, to, static_cast<unsigned>(std::min<std::size_t>(bytes, std::size_t{1} << 30)));
    int code = Z_OK;
    const char* reason = gzerror(file_, &code);
    if (code == Z_BUF_ERROR) fail(Exit::data, "'{}' is truncated (its gzip data ends early); fetch it again", path_);
    if (code == Z_ERRNO) fail(Exit::data, "cannot read '{}' ({})", path_, std::strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END) fail(Exit::data, "'{}' is damaged ({}); fetch it again", path_, reason);
    return static_cast<std::size_t>(std::max(got, 0));
  }

  void skip(Index bytes) override {
    if (gzseek(file_, bytes, SEEK_CUR) < 0) fail(Exit::data, "'{}' is damaged; fetch it again", path_);
  }

 private:
  std::string path_;
  gzFile file_ = nullptr;
};

}  // namespace

std::unique_ptr<ByteStream> open_gzip_file(const std::string& path) { return std::make_unique<GzipFile>(path); }

}  // namespace convoy::preparation
