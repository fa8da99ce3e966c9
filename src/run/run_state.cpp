// SPDX-License-Identifier: Apache-2.0
#include "run/run_state.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace convoy {
namespace {
using Json = nlohmann::json;

constexpr std::array stages{"start", "train", "evaluate", "save", "end"};
constexpr std::array results{"running", "finished", "stopped", "failed", "superseded"};

template <class Enum, std::size_t n>
Enum parse_name(const std::array<const char*, n>& names, const std::string& name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  throw std::invalid_argument("'" + name + "' is unknown");
}

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// An attempt's end is said by whichever rank came first: it is why the others ended.
void add_end(RunState& state, const std::string& text) {
  const Json end = Json::parse(text, nullptr, false);
  if (!end.is_object()) return;  // being written
  state.result = parse_name<Result>(results, end.value("result", "failed"));
  state.exit = static_cast<Exit>(end.value("exit", 1));
  state.message = end.value("message", "");
  state.rank = end.value("rank", Index{-1});
}
}  // namespace

const char* name_of(RunStage stage) { return stages[static_cast<std::size_t>(stage)]; }
const char* name_of(Result result) { return results[static_cast<std::size_t>(result)]; }

Result result_of(Exit code) {
  if (code == Exit::ok) return Result::finished;
  if (code == Exit::stopped) return Result::stopped;
  return code == Exit::superseded ? Result::superseded : Result::failed;
}

std::string path_from(const std::string& run_folder, const std::string& path) {
  const std::filesystem::path relative = std::filesystem::path(path).lexically_proximate(run_folder);
  return relative.empty() || *relative.begin() == ".." ? path : relative.string();
}

std::string to_text(const RunState& s) {
  const Json json = {{"format", 1},
                     {"run", s.run},
                     {"attempt", s.attempt},
                     {"scheduler", s.scheduler},
                     {"job", s.job},
                     {"host", s.host},
                     {"pid", s.pid},
                     {"ranks", s.ranks},
                     {"phase", name_of(s.stage)},
                     {"epoch", s.epoch},
                     {"epochs", s.epochs},
                     {"step", s.step},
                     {"steps", s.steps},
                     {"start_step", s.start_step},
                     {"steps_per_epoch", s.steps_per_epoch},
                     {"images_per_second", s.images_per_second},
                     {"eta_seconds", s.eta_seconds},
                     {"end_time", s.end_time},
                     {"checkpoint",
                      {{"file", s.checkpoint},
                       {"step", s.checkpoint_step},
                       {"time", s.checkpoint_time},
                       {"seconds", s.checkpoint_seconds},
                       {"stall", s.checkpoint_stall}}},
                     {"stop", s.stop},
                     {"stop_time", s.stop_time},
                     {"started", s.started},
                     {"progressed", s.progressed},
                     {"updated", s.updated},
                     {"result", name_of(s.result)},
                     {"exit", static_cast<int>(s.exit)},
                     {"message", s.message},
                     {"rank", s.rank}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunState parse_run_state(const std::string& text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    RunState s;
    const auto take = [](const Json& from, const char* name, auto& to) { from.at(name).get_to(to); };
    take(json, "run", s.run);
    take(json, "attempt", s.attempt);
    take(json, "scheduler", s.scheduler);
    take(json, "job", s.job);
    take(json, "host", s.host);
    take(json, "pid", s.pid);
    take(json, "ranks", s.ranks);
    s.stage = parse_name<RunStage>(stages, json.at("phase").get<std::string>());
    take(json, "epoch", s.epoch);
    take(json, "epochs", s.epochs);
    take(json, "step", s.step);
    take(json, "steps", s.steps);
    take(json, "start_step", s.start_step);
    take(json, "steps_per_epoch", s.steps_per_epoch);
    take(json, "images_per_second", s.images_per_second);
    take(json, "eta_seconds", s.eta_seconds);
    take(json, "end_time", s.end_time);
    const Json& checkpoint = json.at("checkpoint");
    take(checkpoint, "file", s.checkpoint);
    take(checkpoint, "step", s.checkpoint_step);
    take(checkpoint, "time", s.checkpoint_time);
    take(checkpoint, "seconds", s.checkpoint_seconds);
    s.checkpoint_stall = checkpoint.value("stall", 0.0);
    take(json, "stop", s.stop);
    take(json, "stop_time", s.stop_time);
    take(json, "started", s.started);
    take(json, "progressed", s.progressed);
    take(json, "updated", s.updated);
    s.result = parse_name<Result>(results, json.at("result").get<std::string>());
    s.exit = static_cast<Exit>(json.at("exit").get<int>());
    take(json, "message", s.message);
    take(json, "rank", s.rank);
    return s;
  } catch (const std::exception& error) {
    fail(Exit::data, "cannot read '{}' ({}); it is no state of a run of this program", path, error.what());
  }
}

std::optional<RunState> read_run_state(const std::string& folder) {
  const std::string path = folder + "/state.json";
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  RunState state = parse_run_state(*text, path);
  if (const auto end = read_text(fmt::format("{}/attempts/{:04}.end.json", folder, state.attempt)))
    add_end(state, *end);
  return state;
}

}  // namespace convoy
