// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/raw_files.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/errors.hpp"
#include "io/seal.hpp"
#include "preprocess/containers/tar_reader.hpp"

namespace convoy::preparation {
namespace {

namespace fs = std::filesystem;
using RawFiles = std::map<std::string, RawFile>;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The spellings under which mirrors and browsers store `name`.
std::vector<std::string> spellings(const std::string& name) {
  std::vector<std::string> all{name, name + ".gz"};
  if (const auto at = name.find("-idx"); at != std::string::npos) {
    std::string dotted = name;
    dotted[at] = '.';
    all.push_back(dotted);
    all.push_back(dotted + ".gz");
  }
  return all;
}

/// Empty: no spelling of it is there.
std::string find_file(const std::string& folder, const std::string& name) {
  for (const std::string& spelling : spellings(name)) {
    const fs::path path = fs::path(folder) / spelling;
    std::error_code unknown;  // a link to itself is one to name when it is opened
    if (fs::exists(path, unknown) || unknown) return path.string();
  }
  return {};
}

/// A local file, unpacked on the way if it is gzip data. zlib compares the checksum at its end, libarchive does not.
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

std::vector<std::uint8_t> read_whole(const std::string& path) {
  GzipFile file(path);
  std::vector<std::uint8_t> bytes;
  std::size_t used = 0, got = 0;
  do {
    if (used == bytes.size()) bytes.resize(std::max<std::size_t>(2 * used, std::size_t{1} << 20));
    got = file.read(bytes.data() + used, bytes.size() - used);
    used += got;
  } while (got > 0);
  bytes.resize(used);
  return bytes;
}

RawFiles read_from_archive(const std::string& path, const RawLayout& layout) {
  RawFiles files;
  TarReader tar(std::make_unique<GzipFile>(path), path, Compression::none);
  for (TarMember member; tar.next(member);) {
    const std::string name = base_name(member.name);
    if (!contains(layout.required, name) && !contains(layout.optional, name)) continue;
    RawFile& file = files[name] = {name, path + ":" + name, {}};
    tar.read(file.bytes, member.bytes);
  }
  tar.read_rest();
  for (const std::string& name : layout.required) {
    if (!files.contains(name)) fail(Exit::data, "the archive '{}' has no '{}'; check --source", path, name);
  }
  return files;
}

RawFiles read_from_folder(const std::string& folder, const RawLayout& layout) {
  RawFiles files;
  const auto add = [&](const std::string& name) {
    const std::string path = find_file(folder, name);
    if (!path.empty()) files[name] = {name, path, read_whole(path)};
    return !path.empty();
  };
  for (const std::string& name : layout.required) {
    if (!add(name))
      fail(Exit::data, "'{}' is missing (no such file or directory); check --source",
           (fs::path(folder) / name).string());
  }
  for (const std::string& name : layout.optional) add(name);
  return files;
}

}  // namespace

RawFiles read_raw_files(const std::string& source, const RawLayout& layout) {
  std::error_code reason;
  const fs::file_status status = fs::status(source, reason);
  if (!fs::exists(status)) {
    fail(Exit::data, "cannot open the source '{}' ({}); check --source", source,
         reason ? reason.message() : "No such file or directory");
  }
  if (!fs::is_directory(status)) return read_from_archive(source, layout);
  std::vector<std::string> folders{source};
  for (const std::string& inner : layout.folders) folders.push_back((fs::path(source) / inner).string());
  for (const std::string& folder : folders) {
    if (!find_file(folder, layout.required.front()).empty()) return read_from_folder(folder, layout);
  }
  for (const std::string& archive : layout.archives) {
    const std::string path = (fs::path(source) / archive).string();
    if (fs::exists(path, reason) || reason) return read_from_archive(path, layout);
  }
  return read_from_folder(source, layout);  // names the first missing file
}

std::string digest_of(const RawFiles& files) {
  std::uint32_t crc = 0;
  for (const auto& [name, file] : files) {
    const std::uint64_t size = file.bytes.size();
    crc = crc32c(name.data(), name.size() + 1, crc);
    crc = crc32c(&size, sizeof size, crc);
    crc = crc32c(file.bytes.data(), file.bytes.size(), crc);
  }
  return fmt::format("crc32c-{:08x}", crc);
}

}  // namespace convoy::preparation
