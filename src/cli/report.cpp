// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/version.hpp"
#include "io/file.hpp"
#include "report/page.hpp"

namespace convoy {

Exit report_command(const Words& words) {
  const ReportConfig config = parse_report(words);
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

}  // namespace convoy
