// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
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
#include "run/observe.hpp"

namespace convoy {
namespace {

using Row = TableRow;

struct Run {
  std::string folder, model = "-", result = "-";
  Index ranks = 0;
  Index val_since_step = -1;  ///< until which it was validated on another split
  EpochTable table;
};

/// Nothing, with a warning, where no run has begun: a start that failed early leaves such a folder.
std::optional<Run> read_run(const std::string& folder) {
  Run run{.folder = folder, .table = {}};
  std::ifstream file(folder + "/metrics.jsonl");
  if (!file) {
    log::warn("'{}' is left out: it has no metrics.jsonl (it is no run directory, or its run has not begun)", folder);
    return std::nullopt;
  }
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
    const bool open = state->result == Result::running;
    run.result = open ? name_of(decide(*state, observe(folder, *state)).status) : name_of(state->result);
  }
  return run;
}

std::string number(double value, int decimals) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, decimals);
}

/// The best validation counts, as the best checkpoint does.
Row row_of(const Run& run) {
  const auto rows = run.table.rows();
  const EpochRow* best = nullptr;
  double speed = std::nan("");
  for (const EpochRow& row : rows) {
    const double top1 = row.validation[Counter::top1];
    if (row.step > run.val_since_step && !std::isnan(top1) &&
        (best == nullptr || top1 > best->validation[Counter::top1]))
      best = &row;
    if (!std::isnan(row.images_per_second)) speed = row.images_per_second;
  }
  EpochRow none;
  for (double& value : none.validation.values) value = std::nan("");
  const EpochRow& shown = best != nullptr ? *best : none;
  const EpochRow last = rows.empty() ? EpochRow{} : rows.back();
  return {run.folder,
          run.model,
          fmt::format("{}", run.ranks),
          fmt::format("{}", last.epoch),
          number(last.hours, 4),
          number(shown.validation[Counter::top1], 2),
          number(shown.validation[Counter::topk], 2),
          best != nullptr ? fmt::format("{}", best->epoch) : "-",
          number(speed, 1),
          run.result};
}

void add_epochs(const Run& run, std::vector<Row>& to) {
  for (const EpochRow& row : run.table.rows()) {
    Row& shown = to.emplace_back(
        Row{run.folder, fmt::format("{}", row.epoch), fmt::format("{}", row.step), number(row.hours, 4)});
    for (std::size_t i = 0; i < counter_table.size(); ++i)
      if (counter_table[i].console_width > 0) shown.push_back(number(row.training[i], counter_table[i].decimals));
    for (std::size_t i = 0; i < counter_table.size(); ++i)
      shown.push_back(number(row.validation[i], counter_table[i].decimals));
    shown.push_back(number(row.images_per_second, 1));
  }
}

Exit run_summary(const Words& words) {
  const SummaryConfig config = parse_summary(words);
  std::vector<Run> runs;
  for (const std::string& folder : config.folders) {
    if (auto run = read_run(folder)) runs.push_back(std::move(*run));
  }
  if (runs.empty()) fail(Exit::usage, "there is no run to summarise; give run directories (--output-dir of train)");
  const std::string topk = fmt::format("top{}", runs.front().table.k());
  std::vector<Row> rows;
  if (config.per_epoch) {
    rows.push_back(
        {"run", "epoch", "step", "hours", "loss", "top1", "val_loss", "val_top1", "val_" + topk, "images_per_sec"});
    for (const Run& run : runs) add_epochs(run, rows);
  } else {
    rows.push_back(
        {"run", "model", "ranks", "epochs", "hours", "top1", topk, "best_epoch", "images_per_sec", "result"});
    for (const Run& run : runs) rows.push_back(row_of(run));
  }
  write_output(table_text(rows, config.format));
  return Exit::ok;
}

}  // namespace

Command summary_command() {
  return {.name = "summary",
          .overview = {"summary RUN_DIR ...", "table of runs"},
          .usage = "convoy summary RUN_DIR ... [options]",
          .text = "A table of runs: epochs, hours, best top-1 and top-5 on the val split, speed.",
          .see_options = see_options<SummaryConfig>,
          .alone = run_summary};
}

}  // namespace convoy
