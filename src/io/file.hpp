// SPDX-License-Identifier: Apache-2.0
// A file descriptor under RAII with whole reads and writes at offsets. Errors are Error(data) with path and the
// system's reason.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace convoy {

class File {
 public:
  enum class Access : std::uint8_t { read, update, create };  ///< create: empties an existing file
  File(const std::string& path, Access access);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const;
  /// Exactly `bytes`, or an error; safe from several threads. A file that ends early is named as truncated.
  void read_at(void* to, std::size_t bytes, std::uint64_t offset) const;
  void write_at(const void* from, std::size_t bytes, std::uint64_t offset);
  /// Advice that these bytes are read soon.
  void read_ahead(std::uint64_t offset, std::uint64_t bytes) const;
  /// Flushes to the disk. Errors that earlier writes deferred (full disk, quota) show here.
  void sync();
  /// What a destructor can't report: network file systems may tell of a full disk only here.
  void close();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Synced pages leave memory, so that the next reader gets what is on the disk. Advice: a file system may not heed it.
void forget_cached(const std::string& path);

/// Makes names in a folder durable after create or rename.
void sync_folder(const std::string& folder);

/// Throws Error(data) naming both.
void rename_file(const std::string& from, const std::string& to);

// Small files as whole texts.

/// Nothing: there is no such file. Throws Error(data) where it can't be read.
std::optional<std::string> text_of_file(const std::string& path);

/// Writes it whole, in place of what was there. Throws Error(data); an incomplete file may then be left.
void write_text_file(const std::string& path, const std::string& text);

/// Writes `path` + `suffix` and renames it: a reader sees the old text or the new one. Throws Error(data); the old text
/// is then still there.
void replace_text_file(const std::string& path, const std::string& text, const std::string& suffix = ".tmp");

/// False: the file was there already, whoever made it; of several processes on any hosts one gets true. Throws
/// Error(data) where it can't be made.
bool create_text_file(const std::string& path, const std::string& text);

}  // namespace convoy
