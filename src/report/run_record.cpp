// SPDX-License-Identifier: Apache-2.0
#include "report/run_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "io/file.hpp"
#include "metrics/epoch_table.hpp"
#include "metrics/records.hpp"
#include "run/observe.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t most_warnings = 20;

/// NaN for what is no number: so a loss is written that was not finite.
double number(const Json& record, const char* name) {
  const Json* found = record.find(name);
  return found != nullptr && found->is_number() ? found->as<double>() : std::nan("");
}

Index whole(const Json& record, const char* name) {
  const double value = number(record, name);
  return std::isfinite(value) ? static_cast<Index>(value) : 0;
}

std::string text(const Json& record, const char* name, const std::string& otherwise) {
  const Json* found = record.find(name);
  return found != nullptr && found->is_text() ? found->as<std::string>() : otherwise;
}

EpochTimes times_of(const Json& record) {
  EpochTimes times{.epoch = whole(record, "epoch"),
                   .data = number(record, "data_time"),
                   .compute = number(record, "compute_time"),
                   .comm = number(record, "comm_time"),
                   .other = number(record, "other_time"),
                   .slowest = {}};
  if (record.find("busy_time_max") != nullptr) {
    times.busy_min = number(record, "busy_time_min");
    times.busy_mean = number(record, "busy_time_mean");
    times.busy_max = number(record, "busy_time_max");
    times.slowest = fmt::format("rank {} on {}: {}", whole(record, "slowest_rank"), text(record, "slowest_host", "?"),
                                text(record, "slowest_part", "?"));
  }
  return times;
}

void read_metrics(std::istream& file, RunRecord& run) {
  EpochTable table;
  double now = 0;  // epochs done
  Index step = -1;
  run.best_top1 = std::nan("");
  for (std::string line; std::getline(file, line);) {
    const Json record = Json::parse_or_null(line);
    if (!record.is_object()) continue;
    read_line(line, table);
    const std::string split = text(record, "split", "");
    if (split == "run") {
      run.model = text(record, "model", run.model);
      run.device = text(record, "device", run.device);
      run.build = text(record, "build", run.build);
      if (run.started == "-") run.started = text(record, "time", run.started);
      if (record.find("ranks") != nullptr) {
        run.ranks = whole(record, "ranks");
        run.replicas = whole(record, "replicas");
        run.global_batch = whole(record, "global_batch");
      }
    } else if (split == "train") {
      step = whole(record, "step");
      now = number(record, "epoch") - 1 + number(record, "step_in_epoch") / number(record, "steps_per_epoch");
      if (!std::isfinite(now)) continue;
      run.train_loss.push_back({now, number(record, "loss")});
      run.train_top1.push_back({now, number(record, "top1")});
      run.rate.push_back({now, number(record, "lr")});
      run.speed.push_back({now, number(record, "images_per_sec")});
    } else if (split == "val") {
      const double at = whole(record, "step") == step ? now : number(record, "epoch");
      const double top1 = number(record, "top1"), loss = number(record, "loss");
      run.val_loss.push_back({at, loss});
      run.val_top1.push_back({at, top1});
      if (!std::isfinite(loss)) continue;  // never the best, as for best.h5
      if (top1 > run.best_top1 || std::isnan(run.best_top1)) {
        run.best_top1 = top1;
        run.best_epoch = number(record, "epoch");
      }
    } else if (split == "epoch") {
      run.times.push_back(times_of(record));
    }
  }
  if (const auto rows = table.rows(); !rows.empty()) {
    run.epochs = rows.back().epoch;
    run.hours = rows.back().hours;
  }
}

/// What the other files don't tell.
RunOptions read_environment(const std::string& environment) {
  RunOptions found;
  const Json json = Json::parse_or_null(environment);
  if (!json.is_object()) return found;
  for (const char* name : {"mpi", "hdf5", "backends", "driver"})
    found.emplace_back(name, trimmed(text(json, name, "-")));
  std::vector<std::string> hosts;  // each once, of the ranks
  if (const Json* list = json.find("hosts"); list != nullptr && list->is_list())
    for (const Json& host : list->items())
      if (host.is_text() && std::find(hosts.begin(), hosts.end(), host.as<std::string>()) == hosts.end())
        hosts.push_back(host.as<std::string>());
  // What a job is called and where its launcher listens tells nothing of its results.
  if (const Json* variables = json.find("variables"); variables != nullptr && variables->is_object())
    for (const std::string& name : variables->names())
      if (!name.starts_with("SLURM_") && !name.starts_with("PBS_") && !name.starts_with("OMPI_") &&
          !name.starts_with("CONVOY_"))
        found.emplace_back(name, variables->value(name, "-"));
  found.emplace_back("hosts", fmt::format("{}", fmt::join(hosts, " ")));
  return found;
}

std::vector<std::string> read_warnings(const std::string& log) {
  std::vector<std::string> warnings;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line) && warnings.size() < most_warnings;) {
    const auto at = line.find("warning: ");
    if (at == std::string::npos) continue;
    std::string warning = line.substr(at + 9);
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

/// The rows of a table with commas (RFC 4180), quoted fields with line ends included.
std::vector<std::vector<std::string>> read_table(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  bool quoted = false, begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins) rows.emplace_back(1);
    begins = false;
    std::string& field = rows.back().back();
    const char c = text[i];
    if (quoted) {
      quoted = c != '"' || (i + 1 < text.size() && text[i + 1] == '"');
      if (c == '"' && quoted) ++i;
      if (quoted) field += c;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\n') {
      begins = true;
    } else if (c != '\r') {
      field += c;
    }
  }
  return rows;
}

}  // namespace

RunOptions read_options(const std::string& folder) {
  RunOptions options;
  // Lines `key = value`; a default value stands behind a #.
  std::istringstream lines(text_of_file(folder + "/config.cfg").value_or(""));
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    line = trimmed(line);
    if (line.starts_with('[')) section = line + " ";
    if (line.starts_with("# ")) line.erase(0, 2);
    const auto equals = line.find(" = ");
    if (equals == std::string::npos || line.find(' ') != equals) continue;
    options.emplace_back(section + line.substr(0, equals), line.substr(equals + 3));
  }
  return options;
}

std::string value_of(const RunOptions& options, const std::string& name) {
  const auto at = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.first == name; });
  return at == options.end() ? "-" : at->second;
}

std::vector<std::string> differing_names(const std::vector<const RunOptions*>& runs) {
  std::vector<std::string> names;
  for (const RunOptions* run : runs) {
    for (const auto& [name, value] : *run)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::all_of(runs.begin(), runs.end(),
                       [&](const RunOptions* run) { return value_of(*run, name) == value_of(*runs.front(), name); });
  });
  return names;
}

namespace {

std::vector<WorstImage> read_worst(const std::string& file) {
  std::vector<WorstImage> worst;
  const Json json = Json::parse_or_null(file);
  const Json* images = json.find("images");
  if (images == nullptr || !images->is_list()) return worst;
  for (const Json& image : images->items()) {
    const std::string name = text(image, "name", "");
    worst.push_back({.name = name.empty() ? fmt::format("id {}", whole(image, "id")) : name,
                     .label = text(image, "label", "?"),
                     .predicted = text(image, "predicted", "?"),
                     .loss = number(image, "loss"),
                     .probability = number(image, "probability"),
                     .jpeg = text(image, "jpeg", "")});
  }
  return worst;
}

}  // namespace

EvaluationRecord read_evaluation(const std::string& folder) {
  const auto result = text_of_file(folder + "/result.json");
  const Json json = result ? Json::parse_or_null(*result) : Json();
  if (!json.is_object()) fail(Exit::data, "'{}/result.json' is no result of 'convoy evaluate'; evaluate again", folder);
  EvaluationRecord record{.folder = folder,
                          .split = text(json, "split", ""),
                          .checkpoint = text(json, "checkpoint", ""),
                          .images = whole(json, "images"),
                          .top1 = number(json, "top1"),
                          .loss = number(json, "loss"),
                          .classes = {},
                          .confusion = {},
                          .worst = {}};
  if (const auto worst = text_of_file(folder + "/worst.json")) record.worst = read_worst(*worst);
  const auto matrix = text_of_file(folder + "/confusion.csv");
  if (!matrix) return record;
  auto rows = read_table(*matrix);
  if (rows.empty()) return record;
  record.classes.assign(rows.front().begin() + 1, rows.front().end());
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    auto& counts = record.confusion.emplace_back();
    for (auto field = row->begin() + 1; field != row->end(); ++field) {
      try {
        counts.push_back(std::stoll(*field));
      } catch (const std::exception&) {
        fail(Exit::data, "'{}/confusion.csv' has '{}' for a number; evaluate again", folder, *field);
      }
    }
    if (counts.size() != record.classes.size())
      fail(Exit::data, "'{}/confusion.csv' has rows of different lengths; evaluate again", folder);
  }
  if (record.confusion.size() != record.classes.size())
    fail(Exit::data, "'{}/confusion.csv' has {} rows for {} classes; evaluate again", folder, record.confusion.size(),
         record.classes.size());
  return record;
}

RunRecord read_run_record(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  std::ifstream metrics(folder + "/metrics.jsonl");
  run.options = read_options(folder);
  if (!metrics && run.options.empty())
    fail(Exit::usage,
         "'{}' is no run directory (it has neither metrics.jsonl nor config.cfg); give --output-dir of train", folder);
  read_metrics(metrics, run);
  if (const auto environment = text_of_file(folder + "/environment.json"))
    run.environment = read_environment(*environment);
  if (const auto log = text_of_file(folder + "/log.txt")) run.warnings = read_warnings(*log);
  if (const auto state = find_run_state(folder)) {
    const RequeueDecision decision = decide(*state, observe(folder, *state));
    run.result = name_of(decision.status);
    if (decision.status != RunStatus::finished) run.reason = decision.text;
  }
  std::vector<std::string> folders;
  std::error_code ignored;
  for (const std::string& below : {folder, folder + "/evaluation"}) {
    for (const auto& entry : fs::directory_iterator(below, ignored))
      if (fs::exists(entry.path() / "result.json", ignored)) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& found : folders) {
    try {
      run.evaluations.push_back(read_evaluation(found));
    } catch (const Error& e) {  // the rest of the run can still be shown
      run.warnings.emplace_back(e.what());
    }
  }
  return run;
}

}  // namespace convoy
