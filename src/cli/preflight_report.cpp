// SPDX-License-Identifier: Apache-2.0
#include "cli/preflight_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.hpp"
#include "core/topology.hpp"
#include "core/version.hpp"

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
  Json json = Json::list();
  for (const Finding& finding : mine)
    json.add(Json::object({{"code", static_cast<int>(finding.code)}, {"text", finding.text}}));
  const auto all = communicator.all_gather(json.text(-1, Json::Order::as_written), "findings");
  const std::size_t known = to.findings.size();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Json findings = Json::parse(all[rank]);
    for (const Json& found : findings.items()) {
      const auto code = static_cast<Exit>(found.at("code").as<int>());
      const auto text = found.at("text").as<std::string>();
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
  Json json = Json::object({{"build", build_id()},
                            {"ok", code_of(preflight) == Exit::ok},
                            {"exit", static_cast<int>(code_of(preflight))},
                            {"ranks", Json::list()}});
  for (const RankPlacement& own : preflight.placement.ranks) {
    json["ranks"].add(Json::object({{"rank", own.rank},
                                    {"host", own.host},
                                    {"local_rank", own.node_rank},
                                    {"pid", own.pid},
                                    {"device", own.device},
                                    {"cpus", print_cpu_list(own.cpus)},
                                    {"cores", own.cores},
                                    {"numa", own.nodes},
                                    {"threads", own.threads},
                                    {"bound_by", name_of(own.binding)}}));
  }
  for (const Fact& fact : preflight.facts) json[fact.name] = fact.json;
  json["problems"] = Json::list();
  for (const Finding& finding : preflight.findings) {
    json["problems"].add(
        Json::object({{"code", static_cast<int>(finding.code)}, {"text", finding.text}, {"ranks", finding.ranks}}));
  }
  return json.text(2, Json::Order::as_written) + "\n";
}

std::string folded(const std::vector<std::string>& texts) {
  std::vector<std::string> kinds;
  for (const std::string& text : texts) {
    if (std::find(kinds.begin(), kinds.end(), text) == kinds.end()) kinds.push_back(text);
  }
  if (kinds.size() == 1) return kinds.front();
  std::string all;
  for (const std::string& kind : kinds) {
    const auto first = std::find(texts.begin(), texts.end(), kind) - texts.begin();
    all += fmt::format("{}{} ({}, first {})", all.empty() ? "" : "; ", kind,
                       counted(std::count(texts.begin(), texts.end(), kind), "rank"), first);
  }
  return all;
}

}  // namespace convoy
