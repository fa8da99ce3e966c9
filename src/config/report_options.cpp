// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tell about runs.
#include "config/options.hpp"

namespace convoy {
namespace {

/// Below 0 stands for not given.
Option unset_below_zero(Option option, const auto& value) {
  option.print = [&value] { return value < 0 ? std::string() : std::to_string(value); };
  return option;
}

}  // namespace

Option table_format_option(TableFormat& format) {
  return choice_option<TableFormat>(
      "format", format, {{"text", TableFormat::text}, {"markdown", TableFormat::markdown}, {"csv", TableFormat::csv}},
      "format of the table");
}

Option overwrite_option(bool& overwrite) {
  return switch_option("overwrite", overwrite, "replace an existing file").also({"force"});
}

/// All options of a training job, so that its words can be given as they are; help shows those that matter here.
std::vector<OptionGroup> options_of(PreflightConfig& config) {
  std::vector<OptionGroup> groups = options_of(config.train);
  for (OptionGroup& group : groups) {
    const bool matters = group.title == "Data set" || group.title == "Device" || group.title == "Stalls";
    for (Option& option : group.options) {
      if (!matters && option.name != "output-dir") option.hidden();
    }
  }
  OptionGroup own{"Preflight", {}};
  own.options.push_back(switch_option("json", config.json, "print one JSON object instead of a table"));
  groups.insert(groups.begin(), std::move(own));
  return groups;
}

std::vector<OptionGroup> options_of(StatusConfig& config) {
  OptionGroup group{"Status", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(switch_option("json", config.json, "print one JSON object")).only_on_command_line();
  add(unset_below_zero(
          number_option(
              "after", "CODE", config.after, from_to(0, 255),
              "for job scripts: decide what follows a launcher that ended with this code; exit with 0 (done), 75 (submit again) or the code of the failure"),
          config.after))
      .only_on_command_line();
  add(unset_below_zero(number_option("attempts-before", "N", config.attempts_before, at_least(0),
                                     "with --after: number of attempts in the run directory before the launch"),
                       config.attempts_before))
      .only_on_command_line();
  add(unset_below_zero(
          number_option(
              "resubmissions", "N", config.resubmissions, at_least(0),
              "with --after: print 'again' if the job may submit itself again, which it does at most this often; the reasons go to stderr"),
          config.resubmissions))
      .only_on_command_line();
  add(number_option("job-end", "SECONDS", config.job_end, at_least(0),
                    "with --resubmissions: when the scheduler ends the job, since 1970; 0: not known"))
      .only_on_command_line();
  add(number_option("told-to-end", "SECONDS", config.told_to_end, at_least(0),
                    "with --resubmissions: when somebody ended the job, since 1970; 0: nobody did"))
      .only_on_command_line();
  add(switch_option("keeps-nothing", config.keeps_nothing,
                    "with --resubmissions: the program keeps nothing of its work if it is stopped"))
      .only_on_command_line();
  add(text_option(
          "partitions", "DIR", config.partitions,
          "with --resubmissions: the folder of a preparation, which ends after three jobs in a row that made no progress"))
      .only_on_command_line();
  add(number_option("partitions-made", "N", config.partitions_made, at_least(0),
                    "with --partitions: how many partitions and intermediate files this job has made"))
      .only_on_command_line();
  return {std::move(group)};
}

}  // namespace convoy
