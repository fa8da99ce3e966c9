// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "cli/command.hpp"
#include "cli/launch.hpp"
#include "config/options.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/table.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "io/file.hpp"
#include "options/command_line.hpp"
#include "report/chart.hpp"
#include "report/page.hpp"
#include "train/range_test.hpp"

namespace convoy {
namespace {

struct TuneConfig {
  double from = 0, to = 0;
  Index steps = 100;
  std::string csv = "lr_range.csv", plot = "lr_range.html";
  TrainConfig train;
};

OptionGroup own_options(TuneConfig& config) {
  OptionGroup group{"Range test", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(number_option("from-lr", "F", config.from, at_least(0),
                    "learning rate of the first step; 0: the optimizer's usual one / 10000"));
  add(number_option("to-lr", "F", config.to, at_least(0),
                    "learning rate of the last step; 0: the optimizer's usual one * 100"));
  add(number_option("steps", "N", config.steps, from_to(20, 1 << 20), "number of steps"));
  add(text_option("csv", "FILE", config.csv, "write learning rate and loss of each step to this file"));
  add(text_option("plot", "FILE", config.plot, "write an HTML page with a chart of them to this file"));
  return group;
}

std::vector<OptionGroup> options_of(TuneConfig& config) {
  std::vector<OptionGroup> groups{own_options(config)};
  for (OptionGroup& of_training : options_of(config.train)) groups.push_back(std::move(of_training));
  return groups;
}

/// Sets the options of the command itself; the words that are left are those of training.
Words take_own(TuneConfig& config, const Words& words) {
  Words rest;
  if (words.empty() || words.front() != "lr")
    fail(Exit::usage, "'convoy tune' needs to know what; use 'convoy tune lr --data DIR' with the options of train");
  const OptionGroup group = own_options(config);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.starts_with("--") ? with_hyphens(word.substr(2, equals - 2)) : std::string();
    const auto option =
        std::find_if(group.options.begin(), group.options.end(), [&](const Option& own) { return own.name == name; });
    if (option == group.options.end()) {
      rest.push_back(word);
      continue;
    }
    if (equals == std::string::npos && i + 1 == words.size())
      fail(Exit::usage, "--{} needs a value ({})", name, option->value);
    const std::string value = equals == std::string::npos ? words[++i] : word.substr(equals + 1);
    set_option(*option, {.name = name, .value = value, .origin = fmt::format("--{} {}", name, value)});
  }
  return rest;
}

RateRamp ramp_of(const TuneConfig& config) {
  const double usual = info_of(config.train.optimiser.rule).recipes.usual_rate;
  const RateRamp ramp{.low = config.from > 0 ? config.from : usual / 1e4,
                      .high = config.to > 0 ? config.to : usual * 100,
                      .steps = config.steps};
  if (ramp.low >= ramp.high)
    fail(Exit::usage, "the range from --from-lr {:g} to --to-lr {:g} does not rise; give a larger --to-lr", ramp.low,
         ramp.high);
  return ramp;
}

void check(const TuneConfig& config) {
  const TrainConfig& train = config.train;
  if (!train.checkpoint.resume.empty())
    fail(Exit::usage,
         "--resume has no effect on 'tune lr' (the network starts anew); drop it, or give the checkpoint as --weights");
  if (train.dry_run) fail(Exit::usage, "'tune lr' has no --dry-run; drop it");
}

/// A configuration may hold them, so they are no mistakes.
void tell_ignored(const TrainConfig& train) {
  std::vector<std::string> ignored;
  for (const char* name : {"lr", "lr-schedule", "lr-scaling", "warmup-epochs", "epochs", "patience"})
    if (train.said.count(name) > 0) ignored.push_back(fmt::format("--{}", name));
  if (!ignored.empty())
    log::info("'tune lr' raises the learning rate from step to step (--from-lr, --to-lr, --steps) and ignores {}",
              fmt::join(ignored, ", "));
}

/// Before the steps, which take time. A file that replaces another is written beside it first.
void require_writable(const char* option, const std::string& path) {
  if (path.empty()) return;
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    fail(Exit::usage, "--{} '{}' is a folder; give a file", option, path);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    fail(Exit::usage, "--{} '{}' can't be written ('{}': {}); choose another file", option, path, folder,
         std::strerror(errno));
}

std::string csv_of(const std::vector<RangePoint>& points, const std::vector<double>& smoothed) {
  std::vector<TableRow> rows{{"step", "lr", "loss", "smoothed_loss"}};
  for (std::size_t i = 0; i < points.size(); ++i)
    rows.push_back({fmt::format("{}", i + 1), fmt::format("{:.6g}", points[i].rate),
                    fmt::format("{:.6g}", points[i].loss), fmt::format("{:.6g}", smoothed[i])});
  return table_text(rows, TableFormat::csv);
}

std::string page_of(const TuneConfig& config, const std::vector<RangePoint>& points,
                    const std::vector<double>& smoothed, const std::optional<RangeFinding>& found) {
  Line loss{.name = "loss of each step", .colour = 7, .strong = false, .points = {}},
      smooth{.name = "smoothed", .colour = 0, .strong = false, .points = {}};
  double highest = points.front().loss;
  if (found) highest = std::max(highest, found->lowest_loss + 1.5 * (highest - found->lowest_loss));
  for (std::size_t i = 0; i < points.size(); ++i) {
    // Diverged losses would flatten the rest of the curve.
    if (!(points[i].loss <= highest) || !(smoothed[i] <= highest)) continue;
    loss.points.push_back({std::log10(points[i].rate), points[i].loss});
    smooth.points.push_back({std::log10(points[i].rate), smoothed[i]});
  }
  std::vector<Line> lines{loss, smooth};
  const auto mark = [&](const std::string& name, int colour, double rate) {
    const auto at = std::find_if(points.begin(), points.end(), [&](const RangePoint& p) { return p.rate >= rate; });
    const auto i = static_cast<std::size_t>(std::min(at, points.end() - 1) - points.begin());
    lines.push_back({.name = fmt::format("{}: {:.3g}", name, rate),
                     .colour = colour,
                     .strong = true,
                     .points = {{std::log10(points[i].rate), smoothed[i]}}});
  };
  if (found && found->doubt == RangeFinding::Doubt::none) {
    mark("steepest descent", 1, found->steepest);
    mark("lowest loss", 2, found->lowest_rate);
  }
  const std::string title = "Loss over the learning rate";
  return chart_page(fmt::format("Learning-rate range test of {}", config.train.model.model), build_id(),
                    {line_chart(title, "loss", lines, {.name = "learning rate", .base = 10})});
}

/// Why nothing is suggested, and what would help; empty: something is.
std::string tell_doubt(const RangeFinding& found, bool diverged) {
  const auto at_end = [&](const char* end, const char* remedy) {
    return fmt::format("the loss falls fastest at {:.3g}, the {} end of the range ({} would show more)", found.steepest,
                       end, remedy);
  };
  switch (found.doubt) {
    case RangeFinding::Doubt::none:
      return {};
    case RangeFinding::Doubt::scatter:
      return "the loss falls no faster than it scatters from step to step (more --steps or a larger batch would show more)";
    case RangeFinding::Doubt::low_end:
      return at_end("lower", "a smaller --from-lr");
    case RangeFinding::Doubt::high_end:
      return at_end("upper", diverged ? "more --steps" : "a larger --to-lr");
  }
  return {};
}

std::string tell(const TuneConfig& config, const RateRamp& ramp, const RangeTest& test,
                 const std::optional<RangeFinding>& found) {
  std::string text =
      fmt::format("learning rates {:.3g} to {:.3g} in {} of {}, {} per step{}\n", ramp.low, test.points.back().rate,
                  test.points.size(), counted(ramp.steps, "step"), counted(test.global_batch, "image"),
                  test.diverged ? "; the loss diverged" : "; the loss did not diverge");
  if (!found)
    return text +
           "the loss never fell, so there is nothing to suggest; try another range (--from-lr, --to-lr) or more "
           "--steps\n";
  if (const std::string doubt = tell_doubt(*found, test.diverged); !doubt.empty())
    return text + doubt + ", so there is nothing to suggest\n";
  text += fmt::format("loss falls fastest at       {:.3g}\n", found->steepest);
  text += fmt::format("loss is lowest at           {:.3g}, a tenth of it is {:.3g}\n", found->lowest_rate,
                      found->lowest_rate / 10);
  text += fmt::format("suggestion (falls fastest)  --lr {:.2g}{}\n", found->steepest,
                      config.train.said.count("lr-scaling") > 0 && config.train.optimiser.scaling != Scaling::none
                          ? " --lr-scaling none"
                          : "");
  if (!test.diverged && found->lowest_rate > test.points.back().rate / 2)
    text += "the range ended before the loss grew: a larger --to-lr would show more\n";
  return text;
}

Exit run_tune(Session& session, const Words& words) {
  TuneConfig config;
  Words rest;
  std::string problem;
  try {
    rest = take_own(config, words);
  } catch (const Error& error) {  // the message is the same on all ranks
    problem = error.what();
  }
  if (problem.empty()) {
    auto train = agree_on_training(session, rest);
    if (!train) return Exit::usage;
    config.train = std::move(*train);
  }
  Communicator communicator(session, config.train.sync.deadline);
  RateRamp ramp;
  try {
    if (problem.empty()) {
      check(config);
      ramp = ramp_of(config);
    }
  } catch (const Error& error) {
    problem = error.what();
  }
  if (!problem.empty()) {
    if (communicator.rank() == 0) log::report_error(problem);
    return Exit::usage;
  }
  const Exit writable = communicator.agreed_exit("looking at --csv and --plot", [&] {
    if (communicator.rank() != 0) return;
    require_writable("csv", config.csv);
    require_writable("plot", config.plot);
  });
  if (writable != Exit::ok) return writable;
  if (communicator.rank() == 0) tell_ignored(config.train);
  RangeTest test(ramp);
  const Exit code = test.run(communicator, supervise(communicator, config.train.sync.deadline), config.train);
  if (code != Exit::ok || test.points.empty()) return code;
  return communicator.agreed_exit("writing what was found", [&] {
    if (communicator.rank() != 0) return;
    const auto found = find_rate(test.points);
    const std::vector<double> smoothed = smoothed_losses(test.points);
    write_output(tell(config, ramp, test, found));
    if (!config.csv.empty()) replace_text_file(config.csv, csv_of(test.points, smoothed));
    if (!config.plot.empty()) replace_text_file(config.plot, page_of(config, test.points, smoothed, found));
    for (const std::string& file : {config.csv, config.plot})
      if (!file.empty()) write_output(file + "\n");
  });
}

}  // namespace

Command tune_command() {
  return {
      .name = "tune",
      .overview = {"tune lr --data DIR", "learning-rate range test"},
      .usage = "mpirun -np N convoy tune lr --data DIR [--steps N] [options of train]",
      .text =
          "Trains for some steps with a learning rate that rises exponentially, and stops when the loss diverges (its running\n"
          "mean is 4 times its least). Prints the learning rate where the smoothed loss falls fastest, for the batch of these\n"
          "ranks, and a tenth of the learning rate with the lowest loss. Suggests nothing if the loss falls no faster than it\n"
          "scatters, or fastest at an end of the range. Writes lr_range.csv and lr_range.html. Nothing else is kept. Its progress\n"
          "goes to stderr.",
      .first_words = {"lr"},
      .lists_networks = true,
      .heeds_signals = true,
      .see_options = see_options<TuneConfig>,
      .on_ranks = run_tune};
}

}  // namespace convoy
