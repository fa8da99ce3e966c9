// SPDX-License-Identifier: Apache-2.0
#include "metrics/journal.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

bool is_kept(const std::string& line, Index resume_step, Index validated_step) {
  const auto record = nlohmann::json::parse(line, nullptr, false);
  if (!record.is_object()) return false;
  const auto split = record.find("split"), step = record.find("step");
  if (split != record.end() && *split == "run") return true;
  if (step == record.end() || !step->is_number_integer()) return false;
  const bool again = split != record.end() && *split == "val" && validated_step < resume_step;
  return again ? step->get<Index>() < resume_step : step->get<Index>() <= resume_step;
}

}  // namespace

Journal::Journal(const std::string& path, Start start, Index resume_step, Index validated_step) {
  if (start == Start::resume) {
    std::ifstream before(path);
    std::string text;
    for (std::string line; std::getline(before, line);) {
      if (!is_kept(line, resume_step, validated_step)) continue;
      text += line + '\n';
      kept_.push_back(std::move(line));
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
