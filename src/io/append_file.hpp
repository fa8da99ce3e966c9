// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace convoy {

/// A file that grows record by record; each is there whole or not at all, also on a disk that fills up.
class AppendFile {
 public:
  enum class Start { fresh, append };
  /// Throws Error(data).
  AppendFile(std::string path, Start start);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Throws Error(data); what was there before is then as it was, and the next record may succeed.
  void append(std::string_view record);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Records that a run can do without: the program warns once if they can't be written, and once when they can again.
class OptionalRecords {
 public:
  /// Takes no records.
  OptionalRecords() = default;
  /// Throws nothing: a file that can't be opened is named in a warning and takes no records.
  OptionalRecords(const std::string& path, AppendFile::Start start);
  void append(std::string_view record);

 private:
  std::unique_ptr<AppendFile> file_;
  std::int64_t missing_ = 0;  ///< records since the last that was written
};

}  // namespace convoy
