// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/version.hpp"
#include "io/file.hpp"
#include "report/page.hpp"

namespace convoy {
namespace {

struct ReportConfig {
  std::vector<std::string> folders;
  std::string output;  ///< empty: report.html in the first folder
};

std::vector<OptionGroup> options_of(ReportConfig& config) {
  OptionGroup group{"Report", {}};
  group.options.push_back(text_option("output", "FILE", config.output,
                                      "HTML file to write; default: report.html in the first run directory")
                              .short_form('o'));
  return {std::move(group)};
}

Exit run_report(const Words& words) {
  ReportConfig config;
  config.folders = read_words("report", options_of(config), words);
  if (config.folders.empty()) fail(Exit::usage, "no run directory is given; use 'convoy report RUN_DIR ...'");
  std::vector<RunRecord> runs;
  for (const std::string& folder : config.folders) {
    try {
      runs.push_back(read_run_record(folder));
    } catch (const Error& e) {  // the others can still be shown
      log::warn("'{}' is left out: {}", folder, e.what());
    }
  }
  if (runs.empty()) fail(Exit::usage, "there is no run to report; give run directories (--output-dir of train)");
  const std::string path = config.output.empty() ? runs.front().folder + "/report.html" : config.output;
  replace_text_file(path, report_page(runs, build_id()));
  write_output(path + "\n");
  return Exit::ok;
}

}  // namespace

Command report_command() {
  return {
      .name = "report",
      .overview = {"report RUN_DIR ...", "HTML page of runs: curves, times, classes"},
      .usage = "convoy report RUN_DIR ... [-o FILE]",
      .text =
          "Writes one self-contained HTML file about runs: their curves in shared charts, where the time went, confusion\n"
          "matrices of evaluations in the run directories, configuration, and what differs between runs.",
      .see_options = see_options<ReportConfig>,
      .alone = run_report};
}

}  // namespace convoy
