// SPDX-License-Identifier: Apache-2.0
#include "engine/rank_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/cores.hpp"

namespace convoy {
namespace {

constexpr std::size_t columns = 8, most_rows_unfolded = 16;
using Row = std::array<std::string, columns>;

std::string list_of(const std::vector<int>& numbers) {
  constexpr std::size_t longest = 24;
  std::string text = print_cpu_list(numbers);
  return text.size() <= longest ? text : fmt::format("{} of {} to {}", numbers.size(), numbers.front(), numbers.back());
}

/// Without what tells one GPU from the next.
std::string kind_of(const std::string& device) {
  const auto begin = device.find("GPU-");
  if (begin == std::string::npos) return device;
  const auto end = device.find_first_of(" ,;)", begin);
  std::string kind = device.substr(0, begin) + "GPU" + (end == std::string::npos ? "" : device.substr(end));
  return kind;
}

Row row_of(const std::vector<const RankPlacement*>& run, bool folded) {
  std::vector<int> ranks, locals, nodes;
  std::set<int> cpus;
  for (const RankPlacement* own : run) {
    ranks.push_back(own->rank);
    locals.push_back(own->node_rank);
    cpus.insert(own->cpus.begin(), own->cpus.end());
    for (const int node : own->nodes) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }
  const RankPlacement& first = *run.front();
  const std::vector<int> all(cpus.begin(), cpus.end());
  const std::string each = run.size() > 1 ? fmt::format(", {} each", first.cores) : "";
  return {list_of(ranks),
          first.host,
          list_of(locals),
          folded ? kind_of(first.device) : first.device,
          list_of(all) + each,
          list_of(nodes),
          fmt::format("{}", first.threads),
          name_of(first.binding)};
}

bool run_alike(const RankPlacement& a, const RankPlacement& b) {
  return a.threads == b.threads && a.cores == b.cores && a.binding == b.binding &&
         kind_of(a.device) == kind_of(b.device);
}

/// The rows of one host: runs of equal ranks.
std::vector<Row> rows_of(const std::vector<const RankPlacement*>& here) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < here.size();) {
    std::vector<const RankPlacement*> run{here[i]};
    for (++i; i < here.size() && run_alike(*run.front(), *here[i]); ++i) run.push_back(here[i]);
    rows.push_back(row_of(run, true));
  }
  return rows;
}

/// Equal but for ranks and host.
bool same_host(const std::vector<Row>& a, const std::vector<Row>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const Row& x, const Row& y) {
           return std::equal(x.begin() + 2, x.end(), y.begin() + 2);
         });
}

std::vector<Row> folded_rows(const JobPlacement& placement) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const RankPlacement*>> hosts;
  for (const RankPlacement& own : placement.ranks) {
    auto& here = hosts[own.host];
    if (here.empty()) order.push_back(own.host);
    here.push_back(&own);
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < order.size();) {
    const auto& first = hosts.at(order[i]);
    std::vector<Row> block = rows_of(first);
    const std::size_t begin = i;
    while (++i < order.size() && same_host(block, rows_of(hosts.at(order[i])))) {
    }
    if (i - begin > 1) {
      const int last = hosts.at(order[i - 1]).back()->rank;
      for (Row& row : block) row[1] = fmt::format("{} to {} ({} hosts)", order[begin], order[i - 1], i - begin);
      if (block.size() == 1) {
        block[0][0] = fmt::format("{}-{}", first.front()->rank, last);
      } else {
        for (Row& row : block) row[0] += " ...";
      }
    }
    rows.insert(rows.end(), block.begin(), block.end());
  }
  return rows;
}

}  // namespace

std::string table_of(const JobPlacement& placement) {
  std::vector<Row> rows{{"rank", "host", "local", "device", "cores", "NUMA", "threads", "bound by"}};
  if (placement.ranks.size() <= most_rows_unfolded) {
    for (const RankPlacement& own : placement.ranks) rows.push_back(row_of({&own}, false));
  } else {
    const auto folded = folded_rows(placement);
    rows.insert(rows.end(), folded.begin(), folded.end());
  }
  std::array<std::size_t, columns> widths{};
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < columns; ++c) widths.at(c) = std::max(widths.at(c), row.at(c).size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) line += fmt::format("{:<{}}  ", row.at(c), widths.at(c));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace convoy
