// SPDX-License-Identifier: Apache-2.0
#include "metrics/journal.hpp"

#include <filesystem>
#include <fstream>
#include <utility>

#include "core/descriptor.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

struct Line {
  std::string text;
  bool kept = true, validation = false;
  Index step = -1;  ///< -1: whatever it says, the line stays
};

Line parse_line(std::string text, Index resume_epoch) {
  const Json record = Json::parse_or_null(text);
  Line line{std::move(text)};
  const Json *split = record.find("split"), *step = record.find("step"), *epoch = record.find("epoch");
  if (split != nullptr && *split == "run") return line;
  line.validation = split != nullptr && *split == "val";
  if (step == nullptr || !step->is_integer()) return {.kept = false};
  line.step = step->as<Index>();
  line.kept = epoch == nullptr || !epoch->is_integer() || epoch->as<Index>() <= resume_epoch;
  return line;
}

}  // namespace

Journal::Journal(const std::string& path, Start start, Index resume_step, Index validated_step, Index resume_epoch) {
  if (start == Start::resume && is_pipe(path)) {
    log::warn("cannot read '{}' ({}); remove it. The run continues without this file", path, pipe_is_no_file);
    return;
  }
  if (start == Start::resume) {
    std::vector<Line> lines;
    std::ifstream before(path);
    std::size_t count_begins = 0;
    Index newest = 0;
    for (std::string text; std::getline(before, text);) {
      lines.push_back(parse_line(std::move(text), resume_epoch));
      const Index step = lines.back().step;
      if (step < 0) continue;
      if (step < newest) count_begins = lines.size() - 1;
      newest = step;
    }
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      Line& line = lines[i];
      const bool again = line.validation && validated_step < resume_step;
      const bool later = again ? line.step >= resume_step : line.step > resume_step;
      if (!line.kept || (later && i >= count_begins)) continue;
      text += line.text + '\n';
      kept_.push_back(std::move(line.text));
    }
    try {
      replace_text_file(path, text);
    } catch (const Error& e) {
      // Behind what is there, steps would be told twice.
      log::warn("{}. The run continues without this file", e.what());
      return;
    }
  } else {
    std::error_code error;
    std::filesystem::rename(path, path + ".old", error);
    if (error && error != std::errc::no_such_file_or_directory) {
      log::warn("cannot rename '{0}' to '{0}.old' ({1}); repair the file system. The run continues without this file",
                path, error.message());
      return;
    }
  }
  records_ = OptionalRecords(path, AppendFile::Start::append);
}

void Journal::append(const std::string& line) { records_.append(line + '\n'); }

}  // namespace convoy
