// SPDX-License-Identifier: Apache-2.0
#include "cli/preflight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/agree.hpp"
#include "cli/launch.hpp"
#include "core/cores.hpp"
#include "core/counted.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/version.hpp"
#include "engine/rank_table.hpp"

namespace convoy {
namespace {

std::string ranks_of(const Finding& finding) {
  if (finding.ranks.empty()) return {};
  return fmt::format(" [{} {}]", finding.ranks.size() == 1 ? "rank" : "ranks", print_cpu_list(finding.ranks));
}

std::size_t count_of(const Preflight& preflight, bool failures) {
  return static_cast<std::size_t>(
      std::count_if(preflight.findings.begin(), preflight.findings.end(),
                    [&](const Finding& finding) { return (finding.code != Exit::ok) == failures; }));
}

}  // namespace

void share_findings(Communicator& communicator, const std::vector<Finding>& mine, Preflight& to) {
  auto json = nlohmann::json::array();
  for (const Finding& finding : mine) json.push_back({static_cast<int>(finding.code), finding.text});
  const auto all =
      communicator.all_gather(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "findings");
  const std::size_t known = to.findings.size();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (const auto& found : nlohmann::json::parse(all[rank])) {
      const auto code = static_cast<Exit>(found.at(0).get<int>());
      const auto text = found.at(1).get<std::string>();
      const auto same = std::find_if(to.findings.begin() + static_cast<std::ptrdiff_t>(known), to.findings.end(),
                                     [&](const Finding& other) { return other.code == code && other.text == text; });
      if (same == to.findings.end()) {
        to.findings.push_back({code, text, {static_cast<int>(rank)}});
      } else {
        same->ranks.push_back(static_cast<int>(rank));
      }
    }
  }
}

Exit code_of(const Preflight& preflight) {
  Exit worst = Exit::ok;
  for (const Finding& finding : preflight.findings) worst = std::max(worst, finding.code);
  return worst;
}

std::string text_of(const Preflight& preflight) {
  std::string text = table_of(preflight.placement);
  for (const Fact& fact : preflight.facts) text += fmt::format("{}: {}\n", fact.name, fact.text);
  for (const Finding& finding : preflight.findings) {
    text += fmt::format("{}: {}{}\n", finding.code == Exit::ok ? "warning" : "FAILED", finding.text, ranks_of(finding));
  }
  const std::size_t failures = count_of(preflight, true), warnings = count_of(preflight, false);
  if (failures > 0) return text + fmt::format("preflight: {}\n", counted(failures, "failure"));
  return text +
         (warnings > 0 ? fmt::format("preflight: ok, with {}\n", counted(warnings, "warning")) : "preflight: ok\n");
}

std::string json_of(const Preflight& preflight) {
  using Json = nlohmann::ordered_json;
  Json json{{"build", build_id()},
            {"ok", code_of(preflight) == Exit::ok},
            {"exit", static_cast<int>(code_of(preflight))},
            {"ranks", Json::array()}};
  for (const RankPlacement& own : preflight.placement.ranks) {
    json["ranks"].push_back({{"rank", own.rank},
                             {"host", own.host},
                             {"local_rank", own.node_rank},
                             {"pid", own.pid},
                             {"device", own.device},
                             {"cpus", print_cpu_list(own.cpus)},
                             {"cores", own.cores},
                             {"numa", own.nodes},
                             {"threads", own.threads},
                             {"bound_by", name_of(own.binding)}});
  }
  for (const Fact& fact : preflight.facts) {
    Json& object = json[fact.name];
    object = Json::object();
    for (const auto& [name, value] : fact.json) object[name] = Json::parse(value);
  }
  json["problems"] = Json::array();
  for (const Finding& finding : preflight.findings) {
    json["problems"].push_back(
        {{"code", static_cast<int>(finding.code)}, {"text", finding.text}, {"ranks", finding.ranks}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Exit preflight_command(Session& session, const Words& words) {
  const auto config = agree_on_config<PreflightConfig>(session, words, parse_preflight);
  if (!config) return Exit::usage;
  Communicator communicator(session, config->train.sync.deadline);
  supervise(communicator, config->train.sync.deadline);
  Preflight preflight;
  check_places(communicator, config->train.device, preflight);
  check_network(communicator, preflight);
  check_data(communicator, config->train.data, preflight);
  check_run_folder(communicator, config->train, preflight);
  if (communicator.rank() == 0) write_output(config->json ? json_of(preflight) : text_of(preflight));
  return code_of(preflight);
}

}  // namespace convoy
