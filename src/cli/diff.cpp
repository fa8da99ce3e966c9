// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/compare.hpp"
#include "checkpoint/file.hpp"
#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/standard_output.hpp"
#include "core/text.hpp"
#include "metrics/compare.hpp"
#include "options/command_line.hpp"
#include "report/differences.hpp"

namespace convoy {
namespace {

constexpr std::size_t shown_tensors = 5;

struct DiffConfig {
  std::string a, b;  ///< run directories
  bool json = false;
};

std::vector<OptionGroup> options_of(DiffConfig& config) {
  OptionGroup group{"Diff", {}};
  group.options.push_back(switch_option("json", config.json, "print one JSON object").only_on_command_line());
  return {std::move(group)};
}

DiffConfig parse_diff(const Words& words) {
  DiffConfig config;
  const Words folders = read_words("diff", options_of(config), words);
  allow_positional("convoy diff", folders, 2);
  if (folders.size() < 2) fail(Exit::usage, "convoy diff compares two run directories; use 'convoy diff RUN_A RUN_B'");
  config.a = folders[0];
  config.b = folders[1];
  return config;
}

/// Everything that the command shows; a text says why a part could not be compared.
struct RunComparison {
  std::vector<Difference> options, environment, data;
  LogComparison log;
  FirstDifference checkpoints;
  std::string no_pair, unknown_data;  ///< why neither could be compared; empty: they were
};

std::vector<Difference> compare_data(const TrainedData& a, const TrainedData& b) {
  std::vector<Difference> found;
  const auto add = [&](const std::string& name, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) found.push_back({name, {of_a, of_b}});
  };
  const auto digest = [](std::uint64_t value) { return fmt::format("{:016x}", value); };
  const auto size = [](Index height, Index width) { return fmt::format("{}x{}", height, width); };
  add("train split", digest(a.train_digest), digest(b.train_digest));
  add("val split", digest(a.val_digest), digest(b.val_digest));
  add("classes", fmt::format("{}", fmt::join(a.class_names, " ")), fmt::format("{}", fmt::join(b.class_names, " ")));
  if (a.normalise && b.normalise) add("normalisation", name_of(*a.normalise), name_of(*b.normalise));
  add("mean", fmt::format("{}", fmt::join(a.mean, " ")), fmt::format("{}", fmt::join(b.mean, " ")));
  add("deviation", fmt::format("{}", fmt::join(a.std, " ")), fmt::format("{}", fmt::join(b.std, " ")));
  add("mean image", digest(a.mean_image), digest(b.mean_image));
  add("stored size", size(a.height, a.width), size(b.height, b.width));
  add("input size", size(a.input_height, a.input_width), size(b.input_height, b.input_width));
  return found;
}

/// What a run's newest checkpoint says. Throws Error(data).
CheckpointMeta newest_meta(const std::string& run) { return read_main_meta(resolve_checkpoint(run)).meta; }

/// Other kernels give other bits, with the same options on the same device too if they were timed.
void compare_kernels(RunComparison& found) {
  const auto kernels = [](const CheckpointMeta& meta) {
    const auto choices = meta.texts.find("choices");
    return choices == meta.texts.end() ? std::string("-") : fmt::format("{:016x}", hash_text(choices->second));
  };
  const CheckpointComparison& tensors = found.checkpoints.found;
  const std::string a = kernels(tensors.a), b = kernels(tensors.b);
  if (a != b) found.environment.push_back({"digest of the kernel choices", {a, b}});
}

void compare_models(const DiffConfig& config, RunComparison& found) {
  try {
    CheckpointComparison& tensors = found.checkpoints.found;
    const std::vector<CheckpointPair> pairs = common_checkpoints(config.a, config.b);
    if (!pairs.empty()) {
      found.checkpoints = first_difference(pairs);
    } else {
      tensors.a = newest_meta(config.a);
      tensors.b = newest_meta(config.b);
      found.no_pair = fmt::format("A's newest is of step {}, B's of step {}, and no step has one in both",
                                  tensors.a.position.step, tensors.b.position.step);
    }
    found.data = compare_data(tensors.a.data, tensors.b.data);
    compare_kernels(found);
  } catch (const Error& e) {  // the rest of the runs can still be compared
    found.no_pair = found.unknown_data = e.what();
  }
}

RunComparison compare_runs(const DiffConfig& config) {
  const std::vector<RunRecord> runs{read_run_record(config.a), read_run_record(config.b)};
  RunComparison found;
  found.options = compare_options(runs);
  found.environment = compare_environment(runs);
  std::ifstream a(config.a + "/metrics.jsonl"), b(config.b + "/metrics.jsonl");
  found.log = compare_logs(a, b);
  compare_models(config, found);
  return found;
}

/// A run without an option, or one that has no effect there, has a hyphen.
std::string told(const std::string& value) { return value.empty() || value == "-" ? std::string("not set") : value; }

std::string section(const std::string& title, const std::vector<Difference>& rows, const std::string& unknown = {}) {
  if (!unknown.empty()) return fmt::format("{}: not known ({})\n", title, unknown);
  if (rows.empty()) return fmt::format("{}: the same\n", title);
  std::string text = title + ":\n";
  for (const Difference& row : rows)
    text += fmt::format("  {}: {} in A, {} in B\n", row.name, told(row.values[0]), told(row.values[1]));
  return text;
}

/// Runs that don't log the same steps: what of their training could be compared.
std::string text_of_intervals(const LogComparison& log) {
  if (log.train_a == log.train_common && log.train_b == log.train_common) return {};
  return fmt::format(
      "  training is logged at different steps ({} in A, {} in B): compared at {}, and there without means (loss, "
      "accuracy) of intervals of different lengths\n",
      log.train_a, log.train_b, counted(log.train_common, "common step"));
}

/// Do all numbers of the first record that differs agree to what single precision keeps of a sum?
bool differ_by_rounding(const LogComparison& log) {
  constexpr double rounding = 1e-5;
  return log.first && std::all_of(log.first->numbers.begin(), log.first->numbers.end(), [&](const NumberPair& pair) {
           return std::abs(pair.a - pair.b) <= rounding * std::max(std::abs(pair.a), std::abs(pair.b));
         });
}

std::string text_of(const LogComparison& log) {
  std::string text = "numbers: ";
  if (log.records == 0)
    return text + fmt::format("the logs have no record in common (A's ends at step {}, B's at step {})\n", log.last_a,
                              log.last_b);
  if (!log.first)
    return text +
           fmt::format("the same in {} up to step {} (A's log ends at step {}, B's at step {})\n",
                       counted(log.records, "common record"), log.equal_to, log.last_a, log.last_b) +
           text_of_intervals(log);
  text += fmt::format("they differ from step {} on, in the record of '{}'", log.first->step, log.first->split);
  text += log.equal_to > 0 ? fmt::format("; the last equal ones are of step {}\n", log.equal_to)
                           : std::string("; no record before is the same\n");
  for (const NumberPair& pair : log.first->numbers)
    text += fmt::format("  {}: {} in A, {} in B\n", pair.name, pair.a, pair.b);
  return text + text_of_intervals(log);
}

std::string text_of(const TensorDifference& tensor) {
  if (!tensor.problem.empty()) return fmt::format("{}: {}", tensor.name, tensor.problem);
  return fmt::format("{}: largest difference {:.3g}, relative {:.3g}", tensor.name, tensor.largest, tensor.relative);
}

/// Which of several common checkpoints is shown, and what is known of the others.
std::string text_of_place(const FirstDifference& first) {
  if (first.found.differing.empty())
    return first.equal < 2 ? std::string()
                           : fmt::format(", and of {} before", counted(first.equal - 1, "common checkpoint"));
  return first.equal == 0
             ? std::string(", the first common checkpoint")
             : fmt::format(", the first that differs (those of step {} have the same bits)", first.equal_to_step);
}

std::string text_of_tensors(const RunComparison& found) {
  if (!found.no_pair.empty()) return fmt::format("tensors: not compared ({})\n", found.no_pair);
  const FirstDifference& first = found.checkpoints;
  const auto& differing = first.found.differing;
  std::string text = fmt::format("tensors of step {} ('{}', '{}'){}: ", first.pair.step, first.pair.a, first.pair.b,
                                 text_of_place(first));
  if (differing.empty()) {
    text += fmt::format("all {} have the same bits\n", first.found.tensors);
    if (found.log.first && found.log.first->step <= first.pair.step && differ_by_rounding(found.log))
      text +=
          "  the same training, then: the numbers differ because the ranks add up the same losses in another order "
          "(a different number of ranks, or a run that was stopped in between)\n";
  } else {
    text += fmt::format("{} of {} differ\n", differing.size(), first.found.tensors);
    for (std::size_t i = 0; i < std::min(differing.size(), shown_tensors); ++i)
      text += fmt::format("  {}{}\n", i == 0 ? "first " : "", text_of(differing[i]));
    if (differing.size() > shown_tensors) text += fmt::format("  and {} more\n", differing.size() - shown_tensors);
  }
  for (const std::string& reason : first.left_out) text += fmt::format("  not compared: {}\n", reason);
  return text;
}

Json json_of(const std::vector<Difference>& rows) {
  Json json = Json::object();
  for (const Difference& row : rows) json[row.name] = row.values;
  return json;
}

Json json_of(const LogComparison& log) {
  Json json = Json::object({{"common_records", log.records},
                            {"equal_to_step", log.equal_to},
                            {"last_step", std::vector<Index>{log.last_a, log.last_b}},
                            {"train_records", std::vector<Index>{log.train_a, log.train_b}},
                            {"common_train_records", log.train_common}});
  if (!log.first) return json;
  json.set({{"first_step", log.first->step}, {"first_split", log.first->split}});
  for (const NumberPair& pair : log.first->numbers) json["numbers"][pair.name] = std::vector<double>{pair.a, pair.b};
  return json;
}

Json json_of_tensors(const RunComparison& found) {
  if (!found.no_pair.empty()) return Json::object({{"not_compared", found.no_pair}});
  const FirstDifference& first = found.checkpoints;
  Json list = Json::list();
  for (const TensorDifference& tensor : first.found.differing) {
    Json entry = Json::object({{"name", tensor.name}});
    if (tensor.problem.empty())
      entry.set({{"largest", tensor.largest}, {"relative", tensor.relative}});
    else
      entry["problem"] = tensor.problem;
    list.add(std::move(entry));
  }
  return Json::object({{"step", first.pair.step},
                       {"files", std::vector<std::string>{first.pair.a, first.pair.b}},
                       {"tensors", first.found.tensors},
                       {"differing", std::move(list)},
                       {"equal_pairs", static_cast<Index>(first.equal)},
                       {"equal_to_step", first.equal_to_step},
                       {"left_out", first.left_out}});
}

Exit run_diff(const Words& words) {
  const DiffConfig config = parse_diff(words);
  const RunComparison found = compare_runs(config);
  if (config.json) {
    const Json json = Json::object({{"runs", std::vector<std::string>{config.a, config.b}},
                                    {"options", json_of(found.options)},
                                    {"data", found.unknown_data.empty() ? json_of(found.data) : Json()},
                                    {"environment", json_of(found.environment)},
                                    {"numbers", json_of(found.log)},
                                    {"checkpoints", json_of_tensors(found)}});
    write_output(json.text(2, Json::Order::as_written) + "\n");
    return Exit::ok;
  }
  write_output(fmt::format("A {}\nB {}\n", config.a, config.b) + section("options", found.options) +
               section("data", found.data, found.unknown_data) + section("environment", found.environment) +
               text_of(found.log) + text_of_tensors(found));
  return Exit::ok;
}

}  // namespace

Command diff_command() {
  return {
      .name = "diff",
      .overview = {"diff RUN_A RUN_B", "what differs between two runs, and from which step on"},
      .usage = "convoy diff RUN_A RUN_B [options]",
      .text =
          "Shows how two runs differ: options, data, build and environment, the first step whose logged numbers differ, and the\n"
          "tensors that differ in the first common checkpoint that differs. It only reads the run directories,\n"
          "so the runs may still be going. The exit code is 0 whether they differ or not.",
      .see_options = see_options<DiffConfig>,
      .alone = run_diff};
}

}  // namespace convoy
