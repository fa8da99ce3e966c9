// SPDX-License-Identifier: Apache-2.0
#include "metrics/journal.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"

namespace convoy {
namespace {

[[noreturn]] void fail_to_write(const std::string& path) {
  fail(Exit::usage, "cannot write '{}' ({}); choose a writable --output-dir", path, std::strerror(errno));
}

bool is_kept(const std::string& line, Index resume_step) {
  const auto record = nlohmann::json::parse(line, nullptr, false);
  if (!record.is_object()) return false;
  const auto split = record.find("split"), step = record.find("step");
  if (split != record.end() && *split == "run") return true;
  return step != record.end() && step->is_number_integer() && step->get<Index>() <= resume_step;
}

}  // namespace

bool replace_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  return file && !error;
}

Journal::Journal(std::string path, Start start, Index resume_step) : path_(std::move(path)) {
  if (start == Start::resume) {
    std::ifstream before(path_);
    std::string text;
    for (std::string line; std::getline(before, line);) {
      if (!is_kept(line, resume_step)) continue;
      text += line + '\n';
      kept_.push_back(std::move(line));
    }
    if (!replace_file(path_, text)) fail_to_write(path_);
  } else {
    std::error_code missing;
    std::filesystem::rename(path_, path_ + ".old", missing);
  }
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) fail_to_write(path_);
}

void Journal::append(const std::string& line) {
  if (broken_) return;
  file_ << line << '\n' << std::flush;
  if (file_) return;
  broken_ = true;
  log::warn("cannot write '{}' ({}); training goes on without this file", path_, std::strerror(errno));
}

}  // namespace convoy
