// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/file_store.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "core/errors.hpp"
#include "io/file.hpp"

namespace convoy::preparation {
namespace {

namespace fs = std::filesystem;

/// Throws Error(data) for pipes and devices, which may never answer.
const std::string& require_file(const std::string& path) {
  std::error_code reason;
  if (fs::is_other(path, reason)) {
    fail(Exit::data, "cannot read '{}' (it is a pipe, socket or device); give a file", path);
  }
  return path;
}

class FileStream final : public ByteStream {
 public:
  FileStream(const std::string& path, const ByteRange& range)
      : file_(require_file(path), File::Access::read), at_(range.begin), end_(static_cast<Index>(file_.size())) {
    if (range.end >= 0 && range.end > end_) {
      fail(Exit::data, "'{}' is truncated ({} bytes, {} expected); fetch it again", path, end_, range.end);
    }
    if (range.end >= 0) end_ = range.end;
  }
  std::size_t read(std::uint8_t* to, std::size_t bytes) override {
    const auto piece = static_cast<std::size_t>(std::min(static_cast<Index>(bytes), end_ - at_));
    if (piece > 0) file_.read_at(to, piece, static_cast<std::uint64_t>(at_));
    at_ += static_cast<Index>(piece);
    return piece;
  }
  void skip(Index bytes) override {
    if (bytes > end_ - at_) {
      fail(Exit::data, "'{}' is truncated (it ends at byte {}, {} more expected)", file_.path(), end_,
           bytes - (end_ - at_));
    }
    at_ += bytes;
  }
  Index bytes_left() const override { return end_ - at_; }

 private:
  File file_;
  Index at_, end_;
};

/// A link to a folder on the way to it: following it would never end.
bool leads_back(const fs::directory_entry& entry) {
  std::error_code reason;
  if (!entry.is_symlink(reason)) return false;
  const fs::path target = fs::canonical(entry.path(), reason);
  if (reason) return false;
  for (fs::path on_the_way = fs::absolute(entry.path(), reason).parent_path();; on_the_way = on_the_way.parent_path()) {
    if (fs::canonical(on_the_way, reason) == target) return true;
    if (on_the_way == on_the_way.parent_path()) return false;
  }
}

class FileStore final : public Store {
 public:
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}

  Listing list(const std::string& folder) override {
    const std::string path = address(folder);
    std::error_code reason;
    fs::directory_iterator entries(path.empty() ? "." : path, reason);
    if (reason) fail(Exit::data, "cannot open the folder '{}' ({}); check the path", path, reason.message());
    Listing listing;
    for (; entries != fs::directory_iterator(); entries.increment(reason)) {
      if (reason) break;
      const fs::directory_entry& entry = *entries;
      const std::string name = entry.path().filename().string();
      std::error_code unknown;
      if (entry.is_directory(unknown)) {
        if (leads_back(entry)) {
          leave_out(entry.path().string(), "a link to a folder on the way to it");
        } else {
          listing.folders.push_back(name);
        }
      } else if (entry.is_other(unknown)) {
        leave_out(entry.path().string(), "no file (a pipe, socket or device)");
      } else {
        listing.objects.push_back({name, -1, ""});  // sizes would cost a call each: glance_at()
      }
    }
    if (reason) fail(Exit::data, "cannot list the folder '{}' ({}); check the disk", path, reason.message());
    std::sort(listing.folders.begin(), listing.folders.end());
    std::sort(listing.objects.begin(), listing.objects.end(),
              [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
    return listing;
  }

  ObjectInfo look_up(const std::string& name) override {
    const File file(require_file(address(name)), File::Access::read);
    ObjectInfo object = glance_at(name);
    if (object.bytes < 0) fail(Exit::data, "cannot stat '{}'", file.path());
    return object;
  }

  ObjectInfo glance_at(const std::string& name) override {
    struct stat status {};
    if (::stat(address(name).c_str(), &status) != 0) return {name, -1, "missing"};
    return {name, static_cast<Index>(status.st_size),
            fmt::format("{}.{:09}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec)};
  }

  std::unique_ptr<ByteStream> open(const std::string& name, const ByteRange& range) override {
    return std::make_unique<FileStream>(address(name), range);
  }
  std::string address(const std::string& name) const override { return join_names(folder_, name); }
  std::size_t streams_ahead() const override { return 1; }

 private:
  std::string folder_;
};

}  // namespace

std::unique_ptr<Store> open_file_store(const std::string& folder) { return std::make_unique<FileStore>(folder); }

}  // namespace convoy::preparation
