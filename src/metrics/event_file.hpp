// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "io/append_file.hpp"
#include "metrics/metrics.hpp"

namespace convoy {

/// A TensorBoard event file: TFRecords of Event messages (tensorboard.proto), one file per run or resumed run.
class EventFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  /// A new file in `folder` (made where missing) that sorts behind those there. Readers forget steps from `first_step`
  /// on that earlier files hold. If it can't be written, the program warns once and the run continues
  /// without it.
  EventFile(const std::string& folder, Index first_step);
  /// Each call is one flushed event.
  void write(Index step, const Scalars& scalars);
  /// Histograms as GROUP/NAME, norms as GROUP_norm/NAME.
  void write(Index step, const std::string& group, const std::vector<TensorSummary>& summaries);

  // What the plugins of TensorBoard show besides numbers.

  /// A text in Markdown, in the tab Text.
  void write_text(const std::string& tag, const std::string& markdown);
  /// What the tab HParams compares runs by. Texts that are numbers, or true or false, are stored as such.
  void write_hyperparameters(const std::map<std::string, std::string>& values);
  enum class Result : std::uint8_t { success, failure };
  /// Of the run, for the tab HParams.
  void write_end(Result result);
  /// Charts of several tags, in the tab Custom Scalars: title and tags of each.
  void write_charts(const std::string& category,
                    const std::vector<std::pair<std::string, std::vector<std::string>>>& charts);
  const std::string& path() const { return path_; }

 private:
  /// `tensor`: a text that the plugin is given with the metadata; null: none.
  void write_for_plugin(const char* plugin, const std::string& tag, const std::string& content,
                        const std::string* tensor);
  void append(const std::string& message);

  std::string path_;
  OptionalRecords records_;
};

/// One record of a TFRecord file: length, its masked CRC32C, data, its masked CRC32C, all little-endian.
std::string frame_record(const std::string& data);

}  // namespace convoy
