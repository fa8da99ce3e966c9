// SPDX-License-Identifier: Apache-2.0
// Where predictions go.
#pragma once
#include <cstdio>
#include <string>

namespace convoy {

/// Standard output; or a file that appears under its name when it is whole, in place of an older one (of the one that a
/// link leads to); or, where something else has the name already (a device, a pipe), that, written in place.
/// Errors are Error(usage) with path and reason.
class OutputFile {
 public:
  /// Empty: standard output.
  explicit OutputFile(const std::string& path);
  /// Where finish() was not called, nothing is left.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const std::string& text);
  void finish();

 private:
  std::FILE* open();
  [[noreturn]] void refuse() const;
  void remove_unfinished() const;

  std::string path_;
  std::string target_, temporary_;  ///< empty: written in place
  std::FILE* file_;
};

}  // namespace convoy
