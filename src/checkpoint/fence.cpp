// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/fence.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <regex>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"

namespace convoy {
namespace fs = std::filesystem;
namespace {

std::string folder_of_attempts(const std::string& folder) { return folder + "/attempts"; }

std::string record_path(const std::string& folder, Index number) {
  return fmt::format("{}/{:04}.json", folder_of_attempts(folder), number);
}

/// Of `0003.json`; 0 for other names.
Index number_of(const std::string& file) {
  Index number = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), number);
  const bool whole = error == std::errc() && std::string_view(end, file.data() + file.size()) == ".json";
  constexpr Index most = 1'000'000'000;  // another's file must not be the last number there is
  return whole && number < most ? number : 0;
}

/// Opening the folder makes network file systems look again.
std::vector<Index> numbers_in(const std::string& folder, std::error_code& error) {
  std::vector<Index> numbers;
  for (fs::directory_iterator entry(folder_of_attempts(folder), error), end; !error && entry != end;
       entry.increment(error)) {
    if (const Index number = number_of(entry->path().filename().string()); number > 0) numbers.push_back(number);
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

Index highest_in(const std::string& folder, std::error_code& error) {
  const auto numbers = numbers_in(folder, error);
  return numbers.empty() ? 0 : numbers.front();
}

std::string to_text(const AttemptRecord& record) {
  Json json = Json::object({{"run", record.run},
                            {"attempt", record.number},
                            {"scheduler", record.scheduler},
                            {"job", record.job},
                            {"restarts", record.restarts},
                            {"host", record.host},
                            {"pid", record.pid},
                            {"started", record.started},
                            {"ticks", record.ticks}});
  if (!record.checkpoints.empty()) json["checkpoints"] = record.checkpoints;
  if (!record.folder.empty()) json["folder"] = record.folder;
  if (!record.from.empty())
    json["from"].set({{"file", record.from}, {"attempt", record.from_attempt}, {"step", record.from_step}});
  return json.text(1, Json::Order::sorted) + "\n";
}

std::vector<Index> readable_numbers(const std::string& folder) {
  std::error_code error;
  auto numbers = numbers_in(folder, error);
  if (error && error != std::errc::no_such_file_or_directory)
    fail(Exit::data, "cannot read '{}' ({}); check its rights", folder_of_attempts(folder), error.message());
  return numbers;
}

/// Nothing: its writer was killed while it began, or it is damaged.
std::optional<AttemptRecord> read_record(const std::string& folder, Index number) try {
  const auto text = text_of_file(record_path(folder, number));
  const auto json = Json::parse_or_null(text.value_or(""));
  if (!json.is_object()) return std::nullopt;
  AttemptRecord record{.run = json.value("run", ""),
                       .number = number,
                       .scheduler = json.value("scheduler", ""),
                       .job = json.value("job", ""),
                       .restarts = json.value("restarts", Index{0}),
                       .host = json.value("host", ""),
                       .pid = json.value("pid", Index{0}),
                       .started = json.value("started", 0.0),
                       .ticks = json.value("ticks", 0.0),
                       .checkpoints = json.value("checkpoints", ""),
                       .folder = json.value("folder", "")};
  if (const Json* from = json.find("from")) {
    record.from = from->value("file", "");
    record.from_attempt = from->value("attempt", Index{0});
    record.from_step = from->value("step", Index{0});
  }
  return record;
} catch (const std::invalid_argument&) {  // a value of another kind
  return std::nullopt;
}

}  // namespace

Index newest_number(const std::vector<std::string>& folders) {
  Index newest = 0;
  std::error_code ignored;
  for (const std::string& folder : folders) newest = std::max(newest, highest_in(folder, ignored));
  return newest;
}

AttemptRecord newest_attempt(const std::string& folder, Index before) {
  for (const Index number : readable_numbers(folder)) {
    if (number >= before) continue;
    if (const auto record = read_record(folder, number)) return *record;
  }
  return {};
}

bool knows_run(const std::string& folder, const std::string& run) {
  for (const Index number : readable_numbers(folder)) {
    if (const auto record = read_record(folder, number); record && record->run == run) return true;
  }
  return false;
}

namespace {

/// `folder` may be another user's: what can't be read there is no record.
bool has_record(const std::string& folder, const AttemptRecord& record) try {
  const auto same = read_record(folder, record.number);
  return same && same->host == record.host && same->pid == record.pid && same->started == record.started;
} catch (const Error&) {
  return false;
}

bool lies_in(const std::string& run_folder, const AttemptRecord& record) {
  std::error_code unknown;
  const fs::path run = fs::weakly_canonical(run_folder, unknown);
  if (unknown) return false;
  const fs::path folder = fs::weakly_canonical(record.checkpoints, unknown);
  return !unknown && std::mismatch(run.begin(), run.end(), folder.begin(), folder.end()).first == run.end();
}

/// Is the folder where that attempt saved still one of this run directory's own? A run directory that was copied or
/// renamed brings records along that name another's folder.
bool belongs_to(const std::string& run_folder, const AttemptRecord& record) {
  return lies_in(run_folder, record) ||
         (has_record(record.checkpoints, record) && original_of(run_folder, record).empty());
}

}  // namespace

std::string original_of(const std::string& run_folder, const AttemptRecord& record) {
  std::error_code unknown;
  if (record.folder.empty() || fs::equivalent(record.folder, run_folder, unknown)) return {};
  return has_record(record.folder, record) ? record.folder : std::string();
}

std::string tell_original(const std::string& run_folder) {
  for (const Index number : readable_numbers(run_folder)) {
    const auto record = read_record(run_folder, number);
    if (!record || record->checkpoints.empty() || lies_in(run_folder, *record)) continue;
    if (const std::string original = original_of(run_folder, *record); !original.empty())
      return fmt::format("it is a copy of '{}', whose checkpoints lie in '{}'", original, record->checkpoints);
  }
  return {};
}

std::vector<std::string> checkpoint_folders(const std::string& run_folder) {
  std::vector<std::string> folders{run_folder + "/checkpoints"};
  for (const Index number : readable_numbers(run_folder)) {
    const auto record = read_record(run_folder, number);
    if (record && !record->checkpoints.empty() &&
        std::find(folders.begin(), folders.end(), record->checkpoints) == folders.end() &&
        belongs_to(run_folder, *record))
      folders.push_back(record->checkpoints);
  }
  return folders;
}

Index attempts_since(const std::string& folder, double time) {
  std::error_code ignored;
  const auto numbers = numbers_in(folder, ignored);
  return std::count_if(numbers.begin(), numbers.end(), [&](Index number) {
    const auto record = read_record(folder, number);
    return record && record->started > time;
  });
}

bool has_ended(const std::string& folder, Index number) {
  std::error_code ignored;
  return fs::exists(fmt::format("{}/{:04}.end.json", folder_of_attempts(folder), number), ignored);
}

Index claim_attempt(const std::vector<std::string>& folders, AttemptRecord record) {
  record.number = newest_number(folders);
  do {
    ++record.number;
  } while (!claim_number(folders, record));
  return record.number;
}

bool claim_number(const std::vector<std::string>& folders, const AttemptRecord& record) {
  for (auto folder = folders.begin(); folder != folders.end(); ++folder) {
    make_folder(folder_of_attempts(*folder), "make room, or choose a writable --output-dir or --checkpoint-dir");
    if (create_text_file(record_path(*folder, record.number), to_text(record))) continue;
    // A number that is taken in one folder only is given up: gaps do no harm.
    std::error_code ignored;
    for (auto taken = folders.begin(); taken != folder; ++taken)
      fs::remove(record_path(*taken, record.number), ignored);
    return false;
  }
  for (const std::string& folder : folders) sync_folder(folder_of_attempts(folder));
  return true;
}

void rewrite_record(const std::vector<std::string>& folders, const AttemptRecord& record) {
  for (const std::string& folder : folders) {
    replace_text_file(record_path(folder, record.number), to_text(record), fmt::format(".a{:04}.tmp", record.number));
  }
}

Lineage::Lineage(const std::string& folder, Index before) {
  begun_.clear();
  for (const Index number : readable_numbers(folder)) {
    if (number >= before) continue;
    newest_ = std::max(newest_, number);
    if (auto record = read_record(folder, number); record && !record->from.empty())
      begun_.push_back(std::move(*record));
  }
  if (begun_.empty()) begun_.emplace_back();
}

bool Lineage::holds(Index attempt, Index step) const {
  const AttemptRecord& last = newest();
  if (last.number == 0 || attempt >= last.number) return true;
  if (attempt == 0) return step <= last.from_step;
  for (Index at = last.number, steps = 0;;) {
    const auto record =
        std::find_if(begun_.begin(), begun_.end(), [&](const AttemptRecord& one) { return one.number == at; });
    // What came before a fresh start isn't known. An attempt continues an earlier one; a record that says else is
    // damaged.
    if (record == begun_.end() || record->from_attempt >= at) return true;
    at = record->from_attempt;
    steps = record->from_step;
    if (attempt >= at) return attempt == at && step <= steps;
  }
}

Fence::Fence(std::vector<std::string> folders, Index number) : folders_(std::move(folders)), number_(number) {}

Index Fence::newer() const {
  const Index newest = newest_number(folders_);
  return newest > number_ ? newest : 0;
}

void Fence::check() const {
  if (const Index newest = newer(); newest > 0)
    fail(
        Exit::superseded,
        "attempt {} continues this run (this is attempt {}, which writes nothing more); look at that job, and don't submit this one again",
        newest, number_);
}

std::string Fence::suffix() const { return number_ > 0 ? fmt::format(".a{:04}.tmp", number_) : ".tmp"; }

void Fence::rename(const std::string& temporary, const std::string& path) const {
  check();
  try {
    rename_file(temporary, path);
  } catch (const Error&) {
    check();  // a newer attempt may have removed the file meanwhile
    throw;
  }
}

void Fence::replace(const std::string& path, const std::string& text) const {
  const std::string temporary = path + suffix();
  try {
    write_text_file(temporary, text);
    rename(temporary, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void Fence::remove_older_temporaries(const std::string& folder) const {
  static const std::regex temporary(R"(.*\.a(\d+)\.tmp)");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::smatch match;
    if (!std::regex_match(name, match, temporary)) continue;
    const Index number = number_of(match[1].str() + ".json");
    if (number == 0 || number >= number_) continue;
    std::error_code failed;
    fs::remove(entry->path(), failed);
    if (failed) log::warn("cannot remove '{}' ({})", entry->path().string(), failed.message());
  }
}

}  // namespace convoy
