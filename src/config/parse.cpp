// SPDX-License-Identifier: Apache-2.0
#include "config/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "config/class_weights.hpp"
#include "config/effects.hpp"
#include "config/network_file.hpp"
#include "config/network_words.hpp"
#include "config/options.hpp"
#include "config/phases.hpp"
#include "config/rate_choice.hpp"
#include "core/errors.hpp"
#include "core/text.hpp"
#include "network/models.hpp"
#include "options/command_line.hpp"
#include "options/ranges.hpp"

namespace convoy {
namespace {

/// Of a preview: a page of them stays below 1 MB.
constexpr int most_pictures = 144;

/// What was set, besides the fields of the configuration themselves.
struct Given {
  std::set<std::string> names;
  std::vector<std::string> positional;
  std::vector<Assignment> phases;
  std::map<std::string, Assignment> last;  ///< what counts of each name, without phases
  std::vector<Assignment> of_file;         ///< all that the configuration files hold
  std::string own_file;                    ///< of the resumed run; empty: it gives nothing
};

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
  translate_network(given.last, given.names);
  set_options(groups, given.last);
  return given;
}

/// Configuration files are those of training: keys that only training has don't bother the other commands.
std::vector<OptionGroup> keys_of_training(const std::string& command) {
  if (command == "train" || command == "preflight" || command == "preview") return {};
  static TrainConfig unused;
  return options_of(unused);
}

/// The number of the section `phase.1`; 0: before the first section.
int phase_number(const std::string& section, const std::string& origin) {
  if (section.empty()) return 0;
  const std::string digits = section.rfind("phase.", 0) == 0 ? section.substr(6) : "";
  const bool numbered = !digits.empty() && digits.size() < 6 && digits.front() != '0' &&
                        digits.find_first_not_of("0123456789") == std::string::npos;
  if (!numbered)
    fail(Exit::usage, "{} (unknown section); the sections are [phase.1], [phase.2], ...{}", origin,
         section == "network" || section.starts_with("block")
             ? ". A file that describes a network is given as --model-file"
             : "");
  return std::stoi(digits);
}

/// The key of a training phase.
std::string phase_key(const std::string& key, const std::string& origin) {
  std::string field = with_hyphens(key);
  const auto& keys = phase_keys();
  if (std::find(keys.begin(), keys.end(), field) == keys.end()) {
    const std::string meant = nearest(field, keys);
    fail(
        Exit::usage,
        "{} (unknown key in a phase){}; a phase has 'epochs', 'lr', 'image-size', 'batch-size', 'global-batch', 'min-random-area', 'rectangular-validation' and 'data'",
        origin, meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
  }
  return field;
}

/// The option that a key before the first section names.
std::string option_key(const Names& names, const std::string& key, const std::string& origin) {
  const std::string name = with_hyphens(key);
  const auto* entry = names.find(name);
  if (entry == nullptr || entry->negated || name.size() == 1) {
    std::string hint = entry != nullptr ? fmt::format("; write '{} = ...'", entry->option->name) : names.hint(name, "");
    if (hint.empty()) hint = "; 'convoy train --help-all' lists them";
    fail(Exit::usage, "{} (unknown key '{}'){}", origin, key, hint);
  }
  if (entry->option->place == Place::command_line) {
    fail(Exit::usage, "{} (only for the command line); give --{} there", origin, entry->option->name);
  }
  return entry->option->name;
}

/// Does the key belong to the other command alone?
bool is_foreign(const Names& names, const Names& foreign, const std::string& key) {
  const auto* there = foreign.find(with_hyphens(key));
  if (there == nullptr || there->negated || key.size() == 1) return false;
  const auto* here = names.find(there->option->name);
  return here == nullptr || here->option->name != there->option->name;
}

/// `others`: options of the command that the file was written for, if it is another; what only that has (also where its
/// name for it means something else here), and [phase.N], are left out. `name`: of the file.
std::vector<Assignment> read_ini(const Names& names, const std::string& text, const std::string& name,
                                 const std::vector<OptionGroup>& others = {}) {
  const Names foreign(others);
  std::vector<Assignment> assignments;
  std::map<std::pair<int, std::string>, std::string> seen;
  for (const IniLine& line : ini_lines(plain_text(text, name, Exit::usage))) {
    const std::string origin = fmt::format("{}:{}: {}", name, line.number, line.text);
    const int phase = phase_number(line.section, origin);
    if (line.text.front() == '[' && line.text.back() == ']') continue;
    if (line.text.find('=') == std::string::npos)
      fail(Exit::usage, "{} (neither a comment, a [phase.N] nor 'key = value'); write 'key = value'", origin);
    if (!others.empty() && (phase > 0 || is_foreign(names, foreign, line.key))) continue;
    if (const std::string& value = line.value; !line.quoted && value.size() > 1 && value.front() == value.back() &&
                                               (value.front() == '"' || value.front() == '\''))
      fail(Exit::usage, "{} (its value is in quotes); write '{} = {}'", origin, line.key,
           value.substr(1, value.size() - 2));
    if (!line.quoted && line.value.starts_with('"') && line.value.find('"', 1) == std::string::npos)
      fail(Exit::usage, "{} (its value begins with a double quote that nothing closes); close it, or drop it", origin);
    const std::string key = phase > 0 ? phase_key(line.key, origin) : option_key(names, line.key, origin);
    const auto [first, fresh] = seen.emplace(std::pair(phase, key), origin);
    if (!fresh) fail(Exit::usage, "'{}' is set twice ({}; {}); keep one", key, first->second, origin);
    assignments.push_back({key, line.value, origin, phase});
  }
  return assignments;
}

/// The last value of an option.
std::string last_value(const std::vector<Assignment>& assignments, const std::string& name) {
  std::string value;
  for (const Assignment& assignment : assignments)
    if (assignment.phase == 0 && assignment.name == name) value = assignment.value;
  return value;
}

/// What says the same in another way: new words take the place of the old ones' others.
const std::map<std::string, std::set<std::string>>& same_said() {
  static const std::map<std::string, std::set<std::string>> all = {{"batch-size", {"global-batch"}},
                                                                   {"global-batch", {"batch-size"}},
                                                                   {"replicas", {"grad-accum-steps"}},
                                                                   {"grad-accum-steps", {"replicas"}},
                                                                   {"model", {"model-file", "layers"}},
                                                                   {"layers", {"model-file"}},
                                                                   {"data", {"synthetic"}},
                                                                   {"train-data", {"synthetic"}},
                                                                   {"synthetic", {"data", "train-data", "val-data"}}};
  return all;
}

/// Removes from a file's what the command line says in another way, unless it says both.
void leave_out_overridden(std::vector<Assignment>& of_file, const std::vector<Assignment>& of_line, bool positional) {
  std::set<std::string> said;
  for (const Assignment& one : of_line) said.insert(one.name);
  if (positional) said.insert("data");
  for (const auto& [name, others] : same_said()) {
    if (said.count(name) == 0) continue;
    std::erase_if(of_file, [&, &other_names = others](const Assignment& one) {
      return one.phase == 0 && other_names.count(one.name) > 0 && said.count(one.name) == 0;
    });
  }
}

/// What a resumed run takes from its own configuration beside `given`, the words of this job.
std::vector<Assignment> own_configuration(const Names& names, const std::vector<Assignment>& given, bool positional,
                                          const ReadOwn& read_own) {
  const std::string folder = last_value(given, "output-dir");
  if (folder.empty() || last_value(given, "resume") != "auto") return {};
  const auto gives = [&](const std::string& name) {
    return (positional && name == "data") ||
           std::any_of(given.begin(), given.end(), [&](const Assignment& one) { return one.name == name; });
  };
  const bool data = gives("data") || gives("train-data") || gives("synthetic");
  const std::string path = folder + "/config.cfg", text = read_own(path, data ? NamesData::yes : NamesData::no);
  std::vector<Assignment> own = read_ini(names, text, path);
  std::set<std::string> left_out{"output-dir", "checkpoint-dir", "resume",       "run-epochs", "max-steps",  "end-time",
                                 "time-limit", "end-margin",     "inject-fault", "quiet",      "checkpoints"};
  for (const auto& [said, others] : same_said())
    if (gives(said)) left_out.insert(others.begin(), others.end());
  if (gives("data")) left_out.insert("data");
  if (gives("sync"))
    left_out.insert({"local-steps", "node-steps", "node-replicas", "overlap-average", "local-sgd-start",
                     "local-momentum", "outer-optimizer", "outer-lr", "outer-momentum", "sync-bn"});
  const bool phases = std::any_of(given.begin(), given.end(), [](const Assignment& one) { return one.phase > 0; });
  std::erase_if(own, [&](const Assignment& one) { return one.phase > 0 ? phases : left_out.count(one.name) > 0; });
  return own;
}

/// The text of a file that an option names; `remedy` follows whatever is wrong with it.
std::string read_named(const ReadText& read_text, const std::string& path, const std::string& origin,
                       const char* remedy) {
  try {
    return read_text(path);
  } catch (const Error& error) {
    if (error.code() != Exit::usage) throw;
    fail(Exit::usage, "{}{}; check {}", origin.empty() ? "" : origin + ": ", error.what(), remedy);
  }
}

/// In place of a file of a network its name and its layers.
void read_network(std::vector<Assignment>& all, std::size_t at, const ReadText& read_text) {
  const Assignment given = all[at];
  const auto other = std::find_if(all.begin(), all.end(), [](const Assignment& one) { return one.name == "model"; });
  if (other != all.end()) fail(Exit::usage, "{} and {} both give the network; drop one", other->origin, given.origin);
  const std::string text = read_named(read_text, given.value, given.origin, "the path");
  const NetworkFile network = read_network_file(text, given.value);
  // Of what a run directory keeps, a text file is read up to 1 MiB (read_text_file).
  constexpr std::size_t most_bytes = std::size_t{1} << 19;
  if (const std::size_t bytes = to_line(network.layers, Origins::dropped).size(); bytes > most_bytes)
    fail(Exit::usage,
         "{}: the {} layers of '{}' take {} bytes as text, and a configuration holds {}; give a smaller network, or "
         "shorter names",
         given.origin, network.layers.size(), given.value, bytes, most_bytes);
  all[at] = {"model", network.name, given.origin};
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at) + 1,
             {"layers", to_line(network.layers, Origins::kept), given.origin});
}

/// In place of a file of class weights its numbers.
void read_class_weights(Assignment& given, const ReadText& read_text) {
  if (!names_weights_file(given.value)) return;
  const std::string text = read_named(read_text, given.value, given.origin, "the path");
  given.value = weights_of_file(plain_text(text, given.value, Exit::usage));
}

Given fill(const std::string& command, std::vector<OptionGroup> groups, const std::vector<std::string>& words,
           const ReadText& read_text, const ReadOwn& read_own = {}) {
  std::string path;
  groups.push_back(general_options(path));
  const Names names(groups, [&command](const std::string& name) { return foreign_hint(command, name); });
  CommandLine line = read_command_line("convoy " + command, names, words);
  std::vector<Assignment> assignments;
  for (const auto& assignment : line.assignments) {
    if (assignment.name != "config") continue;
    if (!path.empty())
      fail(Exit::usage, "two configuration files are given ('{}' and '{}'); give one", path, assignment.value);
    set_option(groups.back().options.front(), assignment);
  }
  const auto read_files = [&](std::vector<Assignment>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].name == "model-file") read_network(all, i, read_text);
      if (all[i].name == "class-weights") read_class_weights(all[i], read_text);
    }
  };
  read_files(line.assignments);
  if (!path.empty()) {
    const std::string text = read_named(read_text, path, "", "--config");
    // Also an ONNX graph, which has become such a text.
    if (text.starts_with("[network]") || text.find("\n[network]") != std::string::npos)
      fail(Exit::usage, "'{}' describes a network, and --config takes options; give it as --model-file", path);
    assignments = read_ini(names, text, path, keys_of_training(command));
  }
  leave_out_overridden(assignments, line.assignments, command == "train" && !line.positional.empty());
  leave_out_depth(assignments, line.assignments);
  read_files(assignments);
  std::vector<Assignment> of_file = assignments;
  leave_out_depth_alone(of_file);
  for (auto& assignment : line.assignments) {
    if (assignment.name != "config") assignments.push_back(std::move(assignment));
  }
  std::string own_file;
  if (read_own) {
    const auto own = own_configuration(names, assignments, !line.positional.empty(), read_own);
    for (std::vector<Assignment>* all : {&of_file, &assignments}) all->insert(all->begin(), own.begin(), own.end());
    if (!own.empty()) own_file = last_value(assignments, "output-dir") + "/config.cfg";
  }
  Given given = sort_out(groups, std::move(assignments));
  given.positional = std::move(line.positional);
  given.of_file = std::move(of_file);
  given.own_file = std::move(own_file);
  return given;
}

/// Does the configuration have the option's value also if nothing gives it?
bool is_default(const Given& given, const std::string& name) {
  const auto value_of = [&](const std::map<std::string, Assignment>& last) {
    TrainConfig config;
    std::string value;
    const auto groups = options_of(config);
    set_options(groups, last);
    for (const OptionGroup& group : groups)
      for (const Option& option : group.options)
        if (option.name == name) value = option.print();
    return value;
  };
  std::map<std::string, Assignment> others = given.last;
  others.erase(name);
  return value_of(given.last) == value_of(others);
}

/// What is given and changes nothing.
struct Idle {
  std::vector<std::string> names;  ///< go back to their defaults, so that the configuration says what counts
  std::vector<std::string> remarks;
};

/// Names of the file that count in the file alone, but not beside what the command line changes: they are overridden;
/// and defaults that are given, which is said. Refuses the others.
Idle find_idle(const TrainConfig& config, const Given& given) {
  TrainConfig alone;
  const Given file = sort_out(options_of(alone), given.of_file);
  fill_phases(alone, file.phases, file.names);
  alone.said = file.names;
  choose_rate(alone);
  Idle idle;
  const std::vector<std::string> of_others = idle_options(config.model);
  for (const auto& [name, assignment] : given.last) {
    if (std::find(of_others.begin(), of_others.end(), name) != of_others.end()) {
      idle.names.push_back(name);
      idle.remarks.push_back(fmt::format("{} has no effect: {} has none", assignment.origin, config.model.model));
      continue;
    }
    const Effect effect = effect_of(config, name);
    if (effect.mistake == Mistake::nowhere) continue;
    // What an earlier version let a run begin with doesn't keep it from going on.
    if (!given.own_file.empty() && assignment.origin.starts_with(given.own_file + ":")) continue;
    const auto in_file = file.last.find(name);
    if (in_file != file.last.end() && in_file->second.origin == assignment.origin) {
      if (effect.mistake == Mistake::command_line) continue;
      if (effect_of(alone, name).mistake == Mistake::nowhere) {
        idle.names.push_back(name);
        continue;
      }
    }
    if (is_default(given, name)) {
      idle.names.push_back(name);
      idle.remarks.push_back(
          fmt::format("{} has no effect (it is the default): it needs {}", assignment.origin, effect.needs));
      continue;
    }
    fail(Exit::usage, "{} has no effect: it needs {}; give that, or drop it", assignment.origin, effect.needs);
  }
  return idle;
}

/// Balanced epochs draw from all samples, unless --shuffle says another order, which check() then refuses.
void choose_shuffle(TrainConfig& config) {
  if (config.data.balance == Balance::classes && config.said.count("shuffle") == 0)
    config.data.shuffle = Shuffle::global;
}

/// What a batch from the command line does to a file's learning rate.
void remark_on_batch(TrainConfig& config, const Given& given) {
  const auto of_line = [&](const char* name) {
    const auto at = given.last.find(name);
    return at != given.last.end() && at->second.origin.starts_with("-");
  };
  const auto at = given.last.find("lr");
  const bool file_rate = at != given.last.end() && !at->second.origin.starts_with("-");
  const bool batch = of_line("global-batch") || of_line("batch-size");
  if (!file_rate || !batch || config.optimiser.scaling != Scaling::none) return;
  config.remarks.push_back(fmt::format(
      "the learning rate stays that of the file ({}), whatever the batch is: --lr-scaling linear with --lr-base-batch scales it",
      at->second.origin));
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

TrainConfig parse_train(const std::vector<std::string>& words, const ReadText& read_text, const ReadOwn& read_own) {
  TrainConfig config;
  const Given given = fill("train", options_of(config), words, read_text, read_own);
  take_positional("train", given.positional, "data", config.data.folder);
  fill_phases(config, given.phases, given.names);
  config.said = given.names;
  choose_rate(config);
  choose_shuffle(config);
  Idle idle = find_idle(config, given);
  if (!idle.names.empty()) {
    std::map<std::string, Assignment> last = given.last;
    for (const std::string& name : idle.names) last.erase(name);
    config = TrainConfig();
    set_options(options_of(config), last);
    take_positional("train", given.positional, "data", config.data.folder);
    fill_phases(config, given.phases, given.names);
    config.said = given.names;
    for (const std::string& name : idle.names) config.said.erase(name);
    choose_rate(config);
    choose_shuffle(config);
  }
  config.remarks = std::move(idle.remarks);
  config.own_file = given.own_file;
  if (!given.positional.empty()) config.said.insert("data");
  remark_on_batch(config, given);
  try {
    check(config);
  } catch (const Error& e) {
    if (given.own_file.empty()) throw;
    fail(e.code(), "{} (options that are left out are those of '{}')", e.what(), given.own_file);
  }
  return config;
}

void take_positional(const std::string& command, const std::vector<std::string>& positional, const std::string& name,
                     std::string& to) {
  allow_positional("convoy " + command, positional, 1);
  if (positional.empty()) return;
  if (!to.empty() && to != positional[0])
    fail(Exit::usage, "two paths are given (--{} {} and '{}'); give one", name, to, positional[0]);
  to = positional[0];
}

std::vector<std::string> read_words(const std::string& command, const std::vector<OptionGroup>& groups,
                                    const std::vector<std::string>& words, const ReadText& read_text) {
  return fill(command, groups, words, read_text).positional;
}

TrainConfig parse_ini(const std::string& text, const std::string& name) {
  TrainConfig config;
  const auto groups = options_of(config);
  const Given given = sort_out(groups, read_ini(Names(groups), text, name));
  fill_phases(config, given.phases, given.names);
  check(config);
  return config;
}

namespace {

/// A 0 of these stands for what the checkpoint says, so it changes nothing.
void refuse_zeros(const Given& given) {
  for (const char* name : {"image-size", "resize"}) {
    const auto at = given.last.find(name);
    if (at == given.last.end() || at->second.value.find_first_not_of('0') != std::string::npos) continue;
    fail(Exit::usage, "{} has no effect (0 keeps the checkpoint's own); give a number of pixels, or drop it",
         at->second.origin);
  }
}

}  // namespace

EvaluateConfig parse_evaluate(const std::vector<std::string>& words, const ReadText& read_text) {
  EvaluateConfig config;
  const Given given = fill("evaluate", options_of(config), words, read_text);
  take_positional("evaluate", given.positional, "checkpoint", config.checkpoint);
  refuse_zeros(given);
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
  refuse_zeros(given);
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
  allow_positional("convoy bench", given.positional, 1);
  if ((config.profile || config.forward) && config.what != "compute")
    fail(Exit::usage, "--{} is for 'convoy bench compute', and this is 'convoy bench {}'; leave it out",
         config.profile ? "profile" : "forward", config.what);
  if (!config.csv.empty() && config.what != "scaling" && !config.profile)
    fail(Exit::usage,
         "'convoy bench {}' has no table for --csv; use it with 'bench scaling' or 'bench compute --profile'",
         config.what);
  if (config.what == "io" && config.data.folder.empty() && config.data.train_folder.empty() && !config.data.synthetic) {
    fail(Exit::usage, "no data set is given; use --data DIR (made by convoy-preprocess) or --synthetic");
  }
  if (config.machine.empty()) return config;
  if (config.what != "compute" && config.what != "comm")
    fail(Exit::usage, "--machine has no effect on 'bench {}' (it takes the results of compute and comm)", config.what);
  if (!config.frozen.empty())
    fail(
        Exit::usage,
        "--freeze with --machine is not possible (a description knows the time of a whole step, by the network's name); "
        "leave one out");
  if (!given.names.contains("machine-name")) config.machine_name.clear();  // a description that is there keeps its own
  if (config.what == "comm" && given.names.contains("megabytes"))
    fail(
        Exit::usage,
        "--megabytes {} with --machine is not possible (a description rests on messages of several sizes); drop one of "
        "them",
        config.megabytes);
  if (config.backend == "all")
    fail(
        Exit::usage,
        "--backend all with --machine is not possible (a description has one backend); name the one that training uses");
  return config;
}

PreflightConfig parse_preflight(const std::vector<std::string>& words, const ReadText& read_text) {
  PreflightConfig config;
  const Given given = fill("preflight", options_of(config), words, read_text);
  take_positional("preflight", given.positional, "data", config.train.data.folder);
  fill_phases(config.train, given.phases, given.names);
  return config;
}

PreviewConfig parse_preview(const std::vector<std::string>& words, const ReadText& read_text) {
  PreviewConfig config;
  const Given given = fill("preview", options_of(config), words, read_text);
  take_positional("preview", given.positional, "data", config.train.data.folder);
  fill_phases(config.train, given.phases, given.names);
  if (config.samples * config.appearances > most_pictures)
    fail(Exit::usage,
         "a sheet of {} x {} images would be too large a file; give --samples and --appearances of {} in all",
         config.samples, config.appearances, most_pictures);
  return config;
}

InspectConfig parse_inspect(const std::vector<std::string>& words, const ReadText& read_text) {
  InspectConfig config;
  const Given given = fill("inspect", options_of(config), words, read_text);
  config.what = one_of("inspect", given, {"data", "checkpoint", "plan", "build"});
  const bool needs_path = config.what == "data" || config.what == "checkpoint";
  allow_positional("convoy inspect", given.positional, needs_path ? 2 : 1);
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
  allow_positional("convoy status", given.positional, 1);
  if (given.positional.empty() && config.resubmissions < 0)
    fail(Exit::usage, "no run directory is given; use 'convoy status RUN_DIR'");
  if (!given.positional.empty()) config.folder = given.positional[0];
  return config;
}

}  // namespace convoy
