// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fstream>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// A file of JSON lines that a crash can't spoil: every line is flushed, and a resumed run first cuts off what it will
/// do again, so that the file becomes the uninterrupted run's.
class Journal {
 public:
  enum class Start { fresh, resume };
  /// fresh: an earlier file is kept as `PATH.old`. resume: lines with a "step" above resume_step are dropped (those of
  /// "split":"run" stay), and so is a line that was not finished. Throws Error(usage) where it can't be written.
  Journal(std::string path, Start start, Index resume_step);
  void append(const std::string& line);
  /// What a resumed run found, cut.
  const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::string path_;
  std::ofstream file_;
  std::vector<std::string> kept_;
  bool broken_ = false;
};

/// The whole file at once, by renaming. False where it can't be written.
bool replace_file(const std::string& path, const std::string& text);

}  // namespace convoy
