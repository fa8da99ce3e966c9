// SPDX-License-Identifier: Apache-2.0
// Options of the commands that tell about runs.
#include <algorithm>
#include <initializer_list>

#include "config/options.hpp"
#include "options/ranges.hpp"

namespace convoy {
namespace {

/// Below 0 stands for not given.
Option unset_below_zero(Option option, const auto& value) {
  option.print = [&value] { return value < 0 ? std::string() : std::to_string(value); };
  return option;
}

/// All options of a training job, so that its words can be given as they are; help shows those that matter here: of
/// these headings, and of these names.
std::vector<OptionGroup> options_of_job(TrainConfig& job, std::initializer_list<const char*> titles,
                                        std::initializer_list<const char*> names) {
  const auto is_among = [](const std::string& word, std::initializer_list<const char*> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  std::vector<OptionGroup> groups = options_of(job);
  for (OptionGroup& group : groups)
    for (Option& option : group.options)
      if (!is_among(group.title, titles) && !is_among(option.name, names)) option.hidden();
  return groups;
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

std::vector<OptionGroup> options_of(PreflightConfig& config) {
  std::vector<OptionGroup> groups = options_of_job(config.train, {"Data set", "Device", "Stalls"}, {"output-dir"});
  OptionGroup own{"Preflight", {}};
  own.options.push_back(switch_option("json", config.json, "print one JSON object instead of a table"));
  own.add(
      number_option("stress", "SECONDS", config.stress_seconds, seconds_from_0(),
                    "also test arithmetic, memory, disk and the links between all pairs of ranks for about so long; "
                    "0: no test"));
  groups.insert(groups.begin(), std::move(own));
  return groups;
}

std::vector<OptionGroup> options_of(PreviewConfig& config) {
  std::vector<OptionGroup> groups =
      options_of_job(config.train, {"Data set", "Network input", "Augmentation"}, {"seed"});
  for (OptionGroup& group : groups)
    for (Option& option : group.options) {
      if (option.name != "output-dir") continue;
      std::erase(option.aliases, "output");  // this command's own
      option.letter = 0;
    }
  OptionGroup own{"Preview", {}};
  own.add(
      number_option("samples", "N", config.samples, from_to(1, 48), "training images to show, spread over the set"));
  own.add(number_option("appearances", "N", config.appearances, from_to(1, 48), "epochs to show of each image"));
  own.add(text_option("output", "FILE", config.output, "HTML file to write")).short_form('o');
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
