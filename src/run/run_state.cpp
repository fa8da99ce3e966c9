// SPDX-License-Identifier: Apache-2.0
#include "run/run_state.hpp"

#include <array>
#include <chrono>
#include <filesystem>

#include "checkpoint/fence.hpp"
#include "checkpoint/file.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {

constexpr std::array stages{"start", "train", "evaluate", "save", "end"};
constexpr std::array results{"running", "finished", "limited", "stopped", "failed", "superseded"};

template <class Enum, std::size_t n>
Enum parse_name(const std::array<const char*, n>& names, const std::string& name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  throw std::invalid_argument("'" + name + "' is unknown");
}

template <class T>
const T& to_json_value(const T& value) {
  return value;
}
const char* to_json_value(RunStage stage) { return name_of(stage); }
const char* to_json_value(Result result) { return name_of(result); }
int to_json_value(Exit code) { return static_cast<int>(code); }

template <class T>
void from_json_value(const Json& json, T& to) {
  to = json.as<T>();
}
void from_json_value(const Json& json, RunStage& to) { to = parse_name<RunStage>(stages, json.as<std::string>()); }
void from_json_value(const Json& json, Result& to) { to = parse_name<Result>(results, json.as<std::string>()); }
void from_json_value(const Json& json, Exit& to) { to = static_cast<Exit>(json.as<int>()); }

/// The member that `path` names in the object, or in the object that it has in it.
std::pair<std::string, std::string> parts_of(const std::string& path) {
  const auto slash = path.find('/');
  return slash == std::string::npos ? std::pair(std::string(), path)
                                    : std::pair(path.substr(0, slash), path.substr(slash + 1));
}

/// Calls `field` with the path in the JSON object and the member of `s`, for all of them.
template <class State, class Field>
void for_each_field(State& s, const Field& field) {
  field("run", s.run);
  field("attempt", s.attempt);
  field("scheduler", s.scheduler);
  field("job", s.job);
  field("host", s.host);
  field("pid", s.pid);
  field("ranks", s.ranks);
  field("phase", s.stage);
  field("epoch", s.epoch);
  field("epochs", s.epochs);
  field("step", s.step);
  field("steps", s.steps);
  field("start_step", s.start_step);
  field("steps_per_epoch", s.steps_per_epoch);
  field("images_per_second", s.images_per_second);
  field("eta_seconds", s.eta_seconds);
  field("end_time", s.end_time);
  field("checkpoint/file", s.checkpoint);
  field("checkpoint/step", s.checkpoint_step);
  field("checkpoint/time", s.checkpoint_time);
  field("checkpoint/seconds", s.checkpoint_seconds);
  field("checkpoint/stall", s.checkpoint_stall);
  field("stop", s.stop);
  field("stop_time", s.stop_time);
  field("started", s.started);
  field("progressed", s.progressed);
  field("updated", s.updated);
  field("result", s.result);
  field("exit", s.exit);
  field("message", s.message);
  field("rank", s.rank);
}

/// Earlier versions wrote `finished` also for a job that an option ended.
void correct_result(RunState& state) {
  if (state.result == Result::finished && state.step < state.steps) state.result = result_of(Exit::ok, state.stop);
}

/// An attempt's end is said by whichever rank came first: it is why the others ended.
void add_end(RunState& state, const std::string& folder) {
  const auto text = text_of_file(fmt::format("{}/attempts/{:04}.end.json", folder, state.attempt));
  const Json end = Json::parse_or_null(text.value_or(""));
  if (!end.is_object()) return;  // being written
  try {
    RunState told = state;
    told.result = parse_name<Result>(results, end.value("result", "failed"));
    told.exit = static_cast<Exit>(end.value("exit", 1));
    told.message = end.value("message", "");
    told.rank = end.value("rank", Index{-1});
    correct_result(told);
    state = std::move(told);
  } catch (const std::exception&) {  // damaged: it tells nothing
  }
}
}  // namespace

const char* name_of(RunStage stage) { return stages[static_cast<std::size_t>(stage)]; }
const char* name_of(Result result) { return results[static_cast<std::size_t>(result)]; }

Result result_of(Exit code, const std::string& stop) {
  if (code == Exit::ok) return stop.starts_with("--") ? Result::limited : Result::finished;
  if (code == Exit::stopped) return Result::stopped;
  return code == Exit::superseded ? Result::superseded : Result::failed;
}

std::string path_from(const std::string& run_folder, const std::string& path) {
  const std::filesystem::path relative = std::filesystem::path(path).lexically_proximate(run_folder);
  return relative.empty() || *relative.begin() == ".." ? path : relative.string();
}

double time_of_file(const std::string& path) {
  std::error_code failed;
  const auto written = std::filesystem::last_write_time(path, failed);
  if (failed) return 0;
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(written).time_since_epoch()).count();
}

std::string to_text(const RunState& state) {
  Json json = Json::object({{"format", 1}});
  for_each_field(state, [&](const char* path, const auto& value) {
    const auto [folder, name] = parts_of(path);
    (folder.empty() ? json : json[folder])[name] = to_json_value(value);
  });
  return json.text(1, Json::Order::sorted) + "\n";
}

RunState parse_run_state(const std::string& text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    RunState state;
    for_each_field(state, [&](const std::string& field, auto& to) {
      const auto [folder, name] = parts_of(field);
      const Json& holder = folder.empty() ? json : json.at(folder);
      if (field == "checkpoint/stall" && holder.find(name) == nullptr) return;  // older states have none
      from_json_value(holder.at(name), to);
    });
    correct_result(state);
    return state;
  } catch (const std::exception& error) {
    fail(Exit::data, "cannot read '{}' ({}); it is no state of a run of this program", path, error.what());
  }
}

std::optional<RunState> read_run_state(const std::string& folder) {
  const std::string path = folder + "/state.json";
  const auto text = text_of_file(path);
  if (!text) return std::nullopt;
  RunState state = parse_run_state(*text, path);
  add_end(state, folder);
  return state;
}

RunState state_of(const AttemptRecord& record) {
  return {.run = record.run,
          .attempt = record.number,
          .scheduler = record.scheduler,
          .job = record.job,
          .host = record.host,
          .pid = record.pid,
          .started = record.started,
          .progressed = record.started};
}

std::optional<RunState> find_run_state(const std::string& folder) {
  try {
    return read_run_state(folder);
  } catch (const Error& e) {
    const AttemptRecord newest = newest_attempt(folder);
    if (newest.number == 0) throw;
    log::warn("{}. What attempt {} and the checkpoints say counts", e.what(), newest.number);
    RunState state = state_of(newest);
    state.updated = newest.started;
    std::vector<std::string> found;
    for (const std::string& place : checkpoint_folders(folder))
      if (found.empty()) found = list_checkpoints(place, {}, Lineage(folder));
    if (!found.empty()) {
      state.checkpoint = path_from(folder, found.front());
      state.step = state.checkpoint_step = peek(found.front()).step;
      state.checkpoint_time = time_of_file(found.front());
    }
    add_end(state, folder);
    return state;
  }
}

void pass_to_attempt(RunState& state, const std::string& folder, Index attempt) {
  state.attempt = attempt;
  state.result = Result::running;
  state.stage = RunStage::start;
  add_end(state, folder);
}

}  // namespace convoy
