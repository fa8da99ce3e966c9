// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "cli/command.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/table.hpp"
#include "core/text.hpp"
#include "metrics/epoch_table.hpp"
#include "metrics/records.hpp"
#include "report/run_record.hpp"
#include "run/observe.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

struct SummaryConfig {
  std::vector<std::string> folders;
  TableFormat format = TableFormat::text;
  bool per_epoch = false;
};

std::vector<OptionGroup> options_of(SummaryConfig& config) {
  OptionGroup group{"Summary", {}};
  group.options.push_back(table_format_option(config.format));
  group.options.push_back(
      switch_option("per-epoch", config.per_epoch, "print one row per epoch instead of one row per run"));
  return {std::move(group)};
}

SummaryConfig parse_summary(const Words& words) {
  SummaryConfig config;
  config.folders = read_words("summary", options_of(config), words);
  if (config.folders.empty()) fail(Exit::usage, "no run directory is given; use 'convoy summary RUN_DIR ...'");
  return config;
}

using Row = TableRow;

struct Run {
  std::string folder, model = "-", result = "-";
  Index ranks = 0;
  Index val_since_step = -1;  ///< until which it was validated on another split
  EpochTable table;
  EpochRow best;  ///< of the validations; NaN: there was none
  RunOptions options;
};

/// One that failed before its first step has a state alone.
bool is_run(const fs::path& folder) {
  std::error_code unknown;
  return fs::exists(folder / "metrics.jsonl", unknown) || fs::exists(folder / "state.json", unknown);
}

/// The run directory itself, or those below a folder of runs, sorted.
std::vector<std::string> runs_in(const std::string& folder) {
  constexpr int deepest = 3;
  if (is_run(folder)) return {folder};
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const bool run = is_run(at->path());
    if (run) found.push_back(at->path().string());
    if (run || at.depth() + 1 >= deepest) at.disable_recursion_pending();
  }
  std::sort(found.begin(), found.end());
  if (found.empty())
    log::warn("'{}' is left out: it is no run directory (it has no metrics.jsonl), and there is no run below it",
              folder);
  return found;
}

/// The best validation counts, as the best checkpoint does: of those whose loss is finite.
EpochRow best_of(const Run& run) {
  EpochRow none;
  for (double& value : none.validation.values) value = std::nan("");
  for (const EpochRow& row : run.table.rows()) {
    const double top1 = row.validation[Counter::top1];
    const bool known = std::isfinite(row.validation[Counter::loss]) && !std::isnan(top1);
    if (row.step > run.val_since_step && known && !(top1 <= none.validation[Counter::top1])) none = row;
  }
  return none;
}

Run read_run(const std::string& folder) {
  Run run{.folder = folder, .table = {}, .best = {}, .options = read_options(folder)};
  std::ifstream file(folder + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    read_line(line, run.table);
    const Json record = Json::parse_or_null(line);
    if (!record.is_object()) continue;
    try {
      if (record.value("split", "") != "run") continue;
      run.model = record.value("model", run.model);
      run.ranks = static_cast<Index>(record.value("ranks", static_cast<double>(run.ranks)));
      if (record.value("other_val", 0.0) > 0) run.val_since_step = static_cast<Index>(record.value("step", 0.0));
    } catch (const std::invalid_argument&) {  // a damaged line
    }
  }
  if (const auto state = find_run_state(folder)) {
    // A killed run's own word is `running`.
    const bool asks = state->result == Result::running || state->result == Result::limited;
    run.result = asks ? name_of(decide(*state, observe(folder, *state)).status) : name_of(state->result);
  }
  run.best = best_of(run);
  return run;
}

/// The best first: by top-1, then by loss; runs without a validation last.
bool is_better(const Run& a, const Run& b) {
  const double top1 = a.best.validation[Counter::top1], other = b.best.validation[Counter::top1];
  if (std::isnan(top1) || std::isnan(other)) return !std::isnan(top1) && std::isnan(other);
  return top1 != other ? top1 > other : a.best.validation[Counter::loss] < b.best.validation[Counter::loss];
}

/// The K of the runs' topK columns beside top1.
std::set<int> columns_of(const std::vector<Run>& runs) {
  std::set<int> all;
  for (const Run& run : runs)
    if (run.table.k() > 1) all.insert(run.table.k());
  return all;
}

std::string number(double value, int decimals) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, decimals);
}

Row row_of(const Run& run, const std::set<int>& topk, const std::vector<std::string>& differing) {
  const auto rows = run.table.rows();
  double speed = std::nan("");
  for (const EpochRow& row : rows)
    if (!std::isnan(row.images_per_second)) speed = row.images_per_second;
  const EpochRow last = rows.empty() ? EpochRow{} : rows.back();
  Row row{run.folder,
          run.model,
          fmt::format("{}", run.ranks),
          fmt::format("{}", last.epoch),
          number(last.hours, 4),
          number(run.best.validation[Counter::top1], 2)};
  for (const int k : topk) row.push_back(k == run.table.k() ? number(run.best.validation[Counter::topk], 2) : "-");
  row.push_back(std::isnan(run.best.validation[Counter::top1]) ? "-" : fmt::format("{}", run.best.epoch));
  row.push_back(number(speed, 1));
  for (const std::string& name : differing) row.push_back(value_of(run.options, name));
  row.push_back(run.result);
  return row;
}

void add_epochs(const Run& run, const std::set<int>& topk, std::vector<Row>& to) {
  for (const EpochRow& row : run.table.rows()) {
    Row& shown = to.emplace_back(
        Row{run.folder, fmt::format("{}", row.epoch), fmt::format("{}", row.step), number(row.hours, 4)});
    for (std::size_t i = 0; i < counter_table.size(); ++i)
      if (counter_table[i].console_width > 0) shown.push_back(number(row.training[i], counter_table[i].decimals));
    for (const Counter counter : {Counter::loss, Counter::top1})
      shown.push_back(number(row.validation[counter], counter_table.at(static_cast<std::size_t>(counter)).decimals));
    for (const int k : topk) shown.push_back(k == run.table.k() ? number(row.validation[Counter::topk], 2) : "-");
    shown.push_back(number(row.images_per_second, 1));
  }
}

/// How wide a text may be: the terminal, else what most editors and pagers show.
std::size_t width_of_output() {
  constexpr std::size_t usual = 160;
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

/// Leaves out those of the `count` columns from `begin` on that don't fit into `width` beside all others. Returns the
/// names of what is left out.
std::vector<std::string> fit_columns(std::vector<Row>& rows, std::size_t begin, std::size_t count, std::size_t width) {
  const std::vector<std::size_t> widths = column_widths(rows);
  constexpr std::size_t gap = 2;
  std::size_t used = 0;
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (i < begin || i >= begin + count) used += widths[i] + gap;
  std::vector<std::string> left_out;
  std::vector<std::size_t> gone;
  for (std::size_t i = begin; i < begin + count; ++i) {
    if (used + widths[i] <= width) {
      used += widths[i] + gap;
    } else {
      left_out.push_back(rows.front()[i]);
      gone.push_back(i);
    }
  }
  for (Row& row : rows)
    for (auto at = gone.rbegin(); at != gone.rend(); ++at) row.erase(row.begin() + static_cast<std::ptrdiff_t>(*at));
  return left_out;
}

Exit run_summary(const Words& words) {
  const SummaryConfig config = parse_summary(words);
  std::vector<Run> runs;
  for (const std::string& given : config.folders) {
    for (const std::string& folder : runs_in(given)) {
      const auto same = [&](const Run& run) { return run.folder == folder; };
      if (std::none_of(runs.begin(), runs.end(), same)) runs.push_back(read_run(folder));
    }
  }
  if (runs.empty()) fail(Exit::usage, "there is no run to summarise; give run directories (--output-dir of train)");
  std::stable_sort(runs.begin(), runs.end(), is_better);
  const std::set<int> topk = columns_of(runs);
  std::vector<Row> rows;
  std::string note;
  if (config.per_epoch) {
    Row head{"run", "epoch", "step", "hours", "loss", "top1", "val_loss", "val_top1"};
    for (const int k : topk) head.push_back(fmt::format("val_top{}", k));
    head.emplace_back("images_per_sec");
    rows.push_back(std::move(head));
    for (const Run& run : runs) add_epochs(run, topk, rows);
  } else {
    std::vector<const RunOptions*> options;
    for (const Run& run : runs)
      if (!run.options.empty()) options.push_back(&run.options);  // one that failed early has none
    std::vector<std::string> differing = differing_names(options);
    std::erase(differing, "model");  // has a column
    Row head{"run", "model", "ranks", "epochs_done", "hours", "top1"};
    for (const int k : topk) head.push_back(fmt::format("top{}", k));
    head.insert(head.end(), {"best_epoch", "images_per_sec"});
    const std::size_t first_option = head.size();
    head.insert(head.end(), differing.begin(), differing.end());
    head.emplace_back("result");
    rows.push_back(std::move(head));
    for (const Run& run : runs) rows.push_back(row_of(run, topk, differing));
    if (config.format != TableFormat::csv) {
      const bool is_text = config.format == TableFormat::text;
      constexpr std::size_t widest_page = 400;  // characters; a network of --model-file takes thousands
      const auto left_out =
          fit_columns(rows, first_option, differing.size(), is_text ? width_of_output() : widest_page);
      if (!left_out.empty())
        note = fmt::format("{}{} more {}, but the table has no room for {}; --format csv prints all: {}\n",
                           is_text ? "" : "\n", left_out.size(),
                           left_out.size() == 1 ? "option differs" : "options differ",
                           left_out.size() == 1 ? "it" : "them", fmt::join(left_out, ", "));
    }
  }
  write_output(table_text(rows, config.format) + note);
  return Exit::ok;
}

}  // namespace

Command summary_command() {
  return {
      .name = "summary",
      .overview = {"summary RUN_DIR ...", "table of runs"},
      .usage = "convoy summary RUN_DIR ... [options]",
      .text =
          "Prints a table of runs, the best first: epochs done, hours, best accuracy on the val split, speed, options that\n"
          "differ, and how each run ended. RUN_DIR may be a folder of runs. If a line has no room for all options, the last line\n"
          "names the others, and --format csv prints them.",
      .see_options = see_options<SummaryConfig>,
      .alone = run_summary};
}

}  // namespace convoy
