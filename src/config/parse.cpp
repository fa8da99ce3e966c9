// SPDX-License-Identifier: Apache-2.0
#include "config/parse.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "config/assignments.hpp"
#include "config/effects.hpp"
#include "config/options.hpp"
#include "config/phase_fields.hpp"
#include "core/errors.hpp"

namespace convoy {
namespace {

/// What was set, besides the fields of the configuration themselves.
struct Given {
  std::set<std::string> names;
  std::vector<std::string> positional;
  std::vector<Assignment> phases;
  std::map<std::string, Assignment> last;  ///< what counts of each name, without phases
  std::vector<Assignment> of_file;         ///< all that the configuration files hold
  std::string own_file;                    ///< of the resumed run; empty: it gives nothing
};

/// The last assignment of a name wins; options are set in the order of their table.
void set_all(const std::vector<OptionGroup>& groups, const std::map<std::string, Assignment>& last) {
  for (const auto& group : groups) {
    for (const auto& option : group.options) {
      const auto at = last.find(option.name);
      if (at == last.end()) continue;
      const Assignment& given = at->second;
      try {
        if (given.value.empty()) throw BadValue("is empty");
        option.set(given.value);
      } catch (const BadValue& e) {
        fail(Exit::usage, "{} ('{}' {}){}", given.origin, given.value, e.what(),
             option.allowed.empty() ? "" : "; allowed: " + option.allowed);
      }
    }
  }
}

Given sort_out(const std::vector<OptionGroup>& groups, std::vector<Assignment> assignments) {
  Given given;
  for (auto& assignment : assignments) {
    if (assignment.phase > 0) {
      given.phases.push_back(std::move(assignment));
    } else {
      given.names.insert(assignment.name);
      given.last[assignment.name] = std::move(assignment);
    }
  }
  set_all(groups, given.last);
  return given;
}

/// Configuration files are those of training: keys that only training has don't bother the other commands.
std::vector<OptionGroup> keys_of_training(const std::string& command) {
  if (command == "train" || command == "preflight") return {};
  static TrainConfig unused;
  return options_of(unused);
}

/// The last value of an option.
std::string last_value(const std::vector<Assignment>& assignments, const std::string& name) {
  std::string value;
  for (const Assignment& assignment : assignments)
    if (assignment.phase == 0 && assignment.name == name) value = assignment.value;
  return value;
}

/// What a resumed run takes from its own configuration beside `given`, the words of this job.
std::vector<Assignment> own_configuration(const std::vector<OptionGroup>& groups, const std::vector<Assignment>& given,
                                          bool positional, const ReadText& read_own) {
  const std::string folder = last_value(given, "output-dir");
  if (folder.empty() || last_value(given, "resume") != "auto") return {};
  const std::string path = folder + "/config.cfg", text = read_own(path);
  std::vector<Assignment> own = read_ini(groups, text, path);
  const auto gives = [&](const char* name) {
    return (positional && std::string_view(name) == "data") ||
           std::any_of(given.begin(), given.end(), [&](const Assignment& one) { return one.name == name; });
  };
  std::set<std::string> left_out{"output-dir", "checkpoint-dir", "resume",       "run-epochs", "max-steps",  "end-time",
                                 "time-limit", "end-margin",     "inject-fault", "quiet",      "checkpoints"};
  // What says the same in another way gives way to the new words.
  const std::map<const char*, std::vector<const char*>> same_said = {
      {"batch-size", {"global-batch"}},
      {"global-batch", {"batch-size"}},
      {"sync", {"local-steps", "local-sgd-start", "local-momentum", "sync-bn"}},
      {"replicas", {"grad-accum-steps"}},
      {"grad-accum-steps", {"replicas"}},
      {"data", {"data", "synthetic"}},
      {"train-data", {"synthetic"}},
      {"synthetic", {"data", "train-data", "val-data"}}};
  for (const auto& [said, others] : same_said)
    if (gives(said)) left_out.insert(others.begin(), others.end());
  const bool phases = std::any_of(given.begin(), given.end(), [](const Assignment& one) { return one.phase > 0; });
  std::erase_if(own, [&](const Assignment& one) { return one.phase > 0 ? phases : left_out.count(one.name) > 0; });
  return own;
}

Given fill(const std::string& command, const std::vector<OptionGroup>& groups, const std::vector<std::string>& words,
           const ReadText& read_text, const ReadText& read_own = {}) {
  CommandLine line = read_command_line(command, groups, words);
  std::vector<Assignment> of_file;
  if (!line.config_path.empty())
    of_file = read_ini(groups, read_text(line.config_path), line.config_path, keys_of_training(command));
  std::vector<Assignment> assignments = of_file;
  for (auto& assignment : line.assignments) assignments.push_back(std::move(assignment));
  std::string own_file;
  if (read_own) {
    const auto own = own_configuration(groups, assignments, !line.positional.empty(), read_own);
    for (std::vector<Assignment>* all : {&of_file, &assignments}) all->insert(all->begin(), own.begin(), own.end());
    if (!own.empty()) own_file = last_value(assignments, "output-dir") + "/config.cfg";
  }
  Given given = sort_out(groups, std::move(assignments));
  given.positional = std::move(line.positional);
  given.of_file = std::move(of_file);
  given.own_file = std::move(own_file);
  return given;
}

/// `0.1` or `0.1:0.4`.
std::pair<double, double> read_span(const Assignment& given, bool both, const char* allowed) {
  const auto colon = given.value.find(':');
  try {
    if (colon == std::string::npos) {
      if (both) throw BadValue("has no ':'");
      const double value = read_number(given.value, at_least(0));
      return {value, value};
    }
    return {read_number(given.value.substr(0, colon), at_least(0)),
            read_number(given.value.substr(colon + 1), at_least(0))};
  } catch (const BadValue& e) {
    fail(Exit::usage, "{} ('{}' {}); allowed: {}", given.origin, given.value, e.what(), allowed);
  }
}

/// All but epochs and lr.
void set_fields(PhaseConfig& phase, const std::map<std::string, Assignment>& fields) {
  for (const auto& group : options_of(phase)) {
    for (const Option& option : group.options) {
      for (const auto& [name, given] : fields) {
        const bool alias = std::find(option.aliases.begin(), option.aliases.end(), name) != option.aliases.end();
        if (name != option.name && !alias) continue;
        try {
          option.set(given.value);
        } catch (const BadValue& e) {
          fail(Exit::usage, "{} ('{}' {}); allowed: {}", given.origin, given.value, e.what(), option.allowed);
        }
      }
    }
  }
}

void fill_phases(TrainConfig& config, const Given& given) {
  std::map<int, std::map<std::string, Assignment>> phases;
  for (const auto& assignment : given.phases) phases[assignment.phase][assignment.name] = assignment;
  for (const auto& [number, fields] : phases) {
    if (fields.count("epochs") == 0) {
      fail(Exit::usage, "[phase.{}] has no 'epochs' ({}); a phase has 'epochs = BEGIN:END' and what it changes", number,
           fields.begin()->second.origin);
    }
    PhaseConfig phase{.number = number, .rate = {}, .has_rate = fields.count("lr") > 0};
    std::tie(phase.rate.begin_epoch, phase.rate.end_epoch) =
        read_span(fields.at("epochs"), true, "BEGIN:END, epochs >= 0");
    if (phase.has_rate)
      std::tie(phase.rate.from, phase.rate.to) = read_span(fields.at("lr"), false, "RATE or FROM:TO, >= 0");
    set_fields(phase, fields);
    config.phases.push_back(phase);
  }
  if (config.phases.empty()) return;
  const auto rates = std::count_if(config.phases.begin(), config.phases.end(), [](auto& p) { return p.has_rate; });
  if (rates > 0 && given.names.count("lr-schedule") == 0) config.optimiser.schedule.decay = Decay::phases;
}

/// Refuses what is given and changes nothing. Returns the names of the file that count in the file alone, but not
/// beside what the command line changes: they are overridden.
std::vector<std::string> find_overridden(const TrainConfig& config, const Given& given) {
  TrainConfig alone;
  const Given file = sort_out(options_of(alone), given.of_file);
  fill_phases(alone, file);
  std::vector<std::string> overridden;
  for (const auto& [name, assignment] : given.last) {
    const Effect effect = effect_of(config, name);
    if (effect.mistake == Mistake::nowhere) continue;
    const auto in_file = file.last.find(name);
    if (in_file != file.last.end() && in_file->second.origin == assignment.origin) {
      if (effect.mistake == Mistake::command_line) continue;
      if (effect_of(alone, name).mistake == Mistake::nowhere) {
        overridden.push_back(name);
        continue;
      }
    }
    fail(Exit::usage, "{} has no effect: it needs {}; give that, or drop it", assignment.origin, effect.needs);
  }
  return overridden;
}

void allow_positional(const std::string& command, const Given& given, std::size_t most) {
  if (given.positional.size() > most) {
    fail(Exit::usage,
         "'convoy {}' can't use '{}' (an option's name without --, or one path too many); see 'convoy {} --help'",
         command, given.positional[most], command);
  }
}

/// A path given as `--NAME PATH`, or alone.
void take_positional(const std::string& command, const Given& given, const std::string& name, std::string& to) {
  allow_positional(command, given, 1);
  if (given.positional.empty()) return;
  if (given.names.count(name) != 0 && to != given.positional[0]) {
    fail(Exit::usage, "two paths are given (--{} {} and '{}'); give one", name, to, given.positional[0]);
  }
  to = given.positional[0];
}

std::string one_of(const std::string& command, const Given& given, const std::vector<std::string>& kinds) {
  std::string list;
  for (const auto& kind : kinds) list += (list.empty() ? "" : ", ") + kind;
  if (given.positional.empty()) fail(Exit::usage, "'convoy {}' needs to know what (one of {})", command, list);
  for (const auto& kind : kinds) {
    if (kind == given.positional[0]) return kind;
  }
  fail(Exit::usage, "'convoy {} {}' is unknown; it is one of {}", command, given.positional[0], list);
}

}  // namespace

TrainConfig parse_train(const std::vector<std::string>& words, const ReadText& read_text, const ReadText& read_own) {
  TrainConfig config;
  const Given given = fill("train", options_of(config), words, read_text, read_own);
  take_positional("train", given, "data", config.data.folder);
  fill_phases(config, given);
  const std::vector<std::string> overridden = find_overridden(config, given);
  if (!overridden.empty()) {  // back to their defaults, so that the configuration says what counts
    std::map<std::string, Assignment> last = given.last;
    for (const std::string& name : overridden) last.erase(name);
    config = TrainConfig();
    set_all(options_of(config), last);
    take_positional("train", given, "data", config.data.folder);
    fill_phases(config, given);
  }
  config.own_file = given.own_file;
  config.said = given.names;
  for (const std::string& name : overridden) config.said.erase(name);
  if (!given.positional.empty()) config.said.insert("data");
  try {
    check(config);
  } catch (const Error& e) {
    if (given.own_file.empty()) throw;
    fail(e.code(), "{} (options that are left out are those of '{}')", e.what(), given.own_file);
  }
  return config;
}

TrainConfig parse_ini(const std::string& text, const std::string& name) {
  TrainConfig config;
  const auto groups = options_of(config);
  fill_phases(config, sort_out(groups, read_ini(groups, text, name)));
  check(config);
  return config;
}

EvaluateConfig parse_evaluate(const std::vector<std::string>& words, const ReadText& read_text) {
  EvaluateConfig config;
  const Given given = fill("evaluate", options_of(config), words, read_text);
  take_positional("evaluate", given, "checkpoint", config.checkpoint);
  if (config.checkpoint.empty()) {
    fail(Exit::usage,
         "no checkpoint is given; use 'convoy evaluate PATH --data DIR' with a checkpoint or run directory");
  }
  return config;
}

PredictConfig parse_predict(const std::vector<std::string>& words, const ReadText& read_text) {
  PredictConfig config;
  const Given given = fill("predict", options_of(config), words, read_text);
  config.paths = given.positional;
  // The first path is the checkpoint, where no option gives it.
  if (config.checkpoint.empty() && !config.paths.empty()) {
    config.checkpoint = config.paths.front();
    config.paths.erase(config.paths.begin());
  }
  if (config.checkpoint.empty() || config.paths.empty()) {
    fail(
        Exit::usage,
        "'convoy predict' needs a checkpoint and images; use 'convoy predict CHECKPOINT IMAGE ...' with image files, folders of them, or a folder made by convoy-preprocess");
  }
  return config;
}

BenchConfig parse_bench(const std::vector<std::string>& words, const ReadText& read_text) {
  BenchConfig config;
  const Given given = fill("bench", options_of(config), words, read_text);
  config.what = one_of("bench", given, {"compute", "scaling", "io", "comm"});
  allow_positional("bench", given, 1);
  if (config.what == "io" && config.data.folder.empty() && config.data.train_folder.empty() && !config.data.synthetic) {
    fail(Exit::usage, "no data set is given; use --data DIR (made by convoy-preprocess) or --synthetic");
  }
  return config;
}

PreflightConfig parse_preflight(const std::vector<std::string>& words, const ReadText& read_text) {
  PreflightConfig config;
  const Given given = fill("preflight", options_of(config), words, read_text);
  take_positional("preflight", given, "data", config.train.data.folder);
  fill_phases(config.train, given);
  return config;
}

InspectConfig parse_inspect(const std::vector<std::string>& words, const ReadText& read_text) {
  InspectConfig config;
  const Given given = fill("inspect", options_of(config), words, read_text);
  config.what = one_of("inspect", given, {"data", "checkpoint", "plan", "build"});
  const bool needs_path = config.what == "data" || config.what == "checkpoint";
  allow_positional("inspect", given, needs_path ? 2 : 1);
  if (needs_path) {
    if (given.positional.size() < 2) {
      fail(Exit::usage, "'convoy inspect {}' needs {}", config.what,
           config.what == "data" ? "a folder made by convoy-preprocess"
                                 : "a checkpoint file, its folder or a run directory");
    }
    config.path = given.positional[1];
  }
  return config;
}

StatusConfig parse_status(const std::vector<std::string>& words, const ReadText& read_text) {
  StatusConfig config;
  const Given given = fill("status", options_of(config), words, read_text);
  allow_positional("status", given, 1);
  if (given.positional.empty() && config.resubmissions < 0)
    fail(Exit::usage, "no run directory is given; use 'convoy status RUN_DIR'");
  if (!given.positional.empty()) config.folder = given.positional[0];
  return config;
}

SummaryConfig parse_summary(const std::vector<std::string>& words, const ReadText& read_text) {
  SummaryConfig config;
  const Given given = fill("summary", options_of(config), words, read_text);
  config.folders = given.positional;
  if (config.folders.empty()) fail(Exit::usage, "no run directory is given; use 'convoy summary RUN_DIR ...'");
  return config;
}

}  // namespace convoy
