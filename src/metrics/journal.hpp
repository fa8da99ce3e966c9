// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "io/append_file.hpp"

namespace convoy {

/// A file of JSON lines that a crash can't spoil: every line is flushed, and a resumed run first cuts off what it will
/// do again, so that the file becomes the uninterrupted run's.
class Journal {
 public:
  enum class Start { fresh, resume };
  static constexpr Index no_limit = std::numeric_limits<Index>::max();
  /// fresh: an earlier file is kept as `PATH.old`. resume: lines with a "step" above resume_step or an "epoch" above
  /// resume_epoch are dropped (those of "split":"run" stay), of step resume_step itself the "split":"val", where the
  /// run knows only of a validation at validated_step before and makes that one again, and a line that was not
  /// finished. A resume with other batches counts steps anew: where they fall, what stands before is of an earlier
  /// count, and only its epochs are looked at. If it can't be written, the program warns once and the run continues
  /// without it.
  Journal(const std::string& path, Start start, Index resume_step, Index validated_step = no_limit,
          Index resume_epoch = no_limit);
  void append(const std::string& line);
  /// What a resumed run found, cut.
  const std::vector<std::string>& kept() const { return kept_; }

 private:
  OptionalRecords records_;
  std::vector<std::string> kept_;
};

}  // namespace convoy
