// SPDX-License-Identifier: Apache-2.0
#include "engine/placement.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "core/host_facts.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/topology.hpp"

namespace convoy {
namespace {

using Ranks = std::vector<std::size_t>;

std::map<std::string, Ranks> ranks_by_host(const std::vector<std::string>& hosts) {
  std::map<std::string, Ranks> ranks;
  for (std::size_t r = 0; r < hosts.size(); ++r) ranks[hosts[r]].push_back(r);
  return ranks;
}

std::vector<Cpu> cpus_of(const HostView& given) {
  std::vector<Cpu> cpus;
  for (std::size_t i = 0; i < given.ids.size(); ++i)
    cpus.push_back({given.ids[i], given.core_of.at(i), given.node_of.at(i)});
  std::sort(cpus.begin(), cpus.end(),
            [](const Cpu& a, const Cpu& b) { return std::tie(a.node, a.core, a.id) < std::tie(b.node, b.core, b.id); });
  return cpus;
}

bool overlap(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int id) { return std::find(b.begin(), b.end(), id) != b.end(); });
}

/// The ranks of a host that were given just what `rank` was.
Ranks same_cores(const Ranks& here, const std::vector<HostView>& given, std::size_t rank) {
  Ranks same;
  for (const std::size_t r : here) {
    if (given[r].ids == given[rank].ids) same.push_back(r);
  }
  return same;
}

/// True where ranks with other cores run on some of these too.
bool entangled(const Ranks& here, const std::vector<HostView>& given, std::size_t rank) {
  return std::any_of(here.begin(), here.end(), [&](std::size_t r) {
    return given[r].ids != given[rank].ids && overlap(given[r].ids, given[rank].ids);
  });
}

void describe_share(RankPlacement& own, const std::vector<Cpu>& all) {
  std::vector<Cpu> mine;
  std::set<int> nodes;
  for (const Cpu& cpu : all) {
    if (std::find(own.cpus.begin(), own.cpus.end(), cpu.id) == own.cpus.end()) continue;
    mine.push_back(cpu);
    nodes.insert(cpu.node);
  }
  own.cores = std::max(1, count_cores(mine));
  own.nodes.assign(nodes.begin(), nodes.end());
}

/// The share of same[place].
std::vector<int> share_of(const std::vector<Cpu>& cpus, const std::vector<HostView>& given, const Ranks& same,
                          std::size_t rank) {
  const auto deal_among = [&](const std::vector<Cpu>& some, const Ranks& ranks) {
    const auto dealt = deal_cores(some, static_cast<int>(ranks.size()));
    const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return dealt.empty() ? std::vector<int>() : dealt[static_cast<std::size_t>(place)];
  };
  std::map<int, Ranks> by_node;
  for (const std::size_t r : same) by_node[given[r].gpu_node].push_back(r);
  std::map<int, std::vector<Cpu>> cpus_by_node;
  for (const Cpu& cpu : cpus) cpus_by_node[cpu.node].push_back(cpu);
  const bool near = std::all_of(by_node.begin(), by_node.end(), [&](const auto& group) {
    return group.first >= 0 && count_cores(cpus_by_node[group.first]) >= static_cast<int>(group.second.size());
  });
  const int node = given[rank].gpu_node;
  return near ? deal_among(cpus_by_node[node], by_node[node]) : deal_among(cpus, same);
}

/// Chooses cores and binding of a rank. Returns the threads that these cores are good for.
int place_rank(RankPlacement& own, const Ranks& here, const std::vector<HostView>& views, Bind bind) {
  const auto rank = static_cast<std::size_t>(own.rank);
  const HostView& view = views[rank];
  const std::vector<Cpu> cpus = cpus_of(view);
  const Ranks same = same_cores(here, views, rank);
  const auto sharing = static_cast<int>(same.size());
  const int cores = count_cores(cpus);
  own.given = own.cpus = view.ids;
  own.quota = view.quota;
  own.binding = sharing > 1                                                          ? Binding::shared
                : static_cast<int>(view.ids.size()) < view.online || here.size() > 1 ? Binding::launcher
                                                                                     : Binding::whole;
  const bool limited = view.quota > 0 && view.quota < cores;
  if (view.openmp_binds) {
    own.binding = Binding::openmp;
  } else if (bind == Bind::cores && sharing > 1 && !limited && !entangled(here, views, rank)) {
    auto share = share_of(cpus, views, same, rank);
    if (!share.empty()) {
      own.cpus = std::move(share);
      own.binding = Binding::convoy;
    }
  }
  describe_share(own, cpus);
  const int share = own.binding == Binding::convoy ? own.cores : cores / sharing;
  const int allowed = view.quota > 0 ? static_cast<int>(view.quota / static_cast<double>(here.size())) : share;
  return std::max(1, std::min(share, allowed));
}

HostView look_around(const std::string& device, int node_rank) {
  HostView given;
  given.ids = cores_at_start();
  for (const int id : given.ids) {
    const Cpu cpu = Topology::of_this_host().describe({id}).front();
    given.core_of.push_back(cpu.core);
    given.node_of.push_back(cpu.node);
  }
  given.quota = cpu_quota();
  given.online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const char* wish = std::getenv("OMP_NUM_THREADS");
  if (wish != nullptr) given.omp_num_threads = std::max(0, std::atoi(wish));
  const char* bound = std::getenv("OMP_PROC_BIND");
  given.openmp_binds = (bound != nullptr && std::string(bound) != "false" && std::string(bound) != "FALSE") ||
                       std::getenv("OMP_PLACES") != nullptr || std::getenv("GOMP_CPU_AFFINITY") != nullptr;
  if (device != "cpu") {
    const auto nodes = Topology::of_this_host().gpu_nodes(std::getenv("CUDA_VISIBLE_DEVICES"));
    if (!nodes.empty()) given.gpu_node = nodes[static_cast<std::size_t>(node_rank) % nodes.size()];
  }
  return given;
}

std::string to_text(const HostView& given, Index pid) {
  Json json = Json::list();
  for (const Json& item :
       {Json(given.ids), Json(given.core_of), Json(given.node_of), Json(given.quota), Json(given.online),
        Json(given.omp_num_threads), Json(given.openmp_binds), Json(given.gpu_node), Json(pid)})
    json.add(item);
  return json.text(-1, Json::Order::as_written);
}

HostView from_text(const std::string& text, Index& pid) {
  const Json json = Json::parse(text);
  HostView given;
  std::size_t next = 0;
  const auto take = [&](auto& to) { to = json.items().at(next++).as<std::decay_t<decltype(to)>>(); };
  take(given.ids);
  take(given.core_of);
  take(given.node_of);
  take(given.quota);
  take(given.online);
  take(given.omp_num_threads);
  take(given.openmp_binds);
  take(given.gpu_node);
  take(pid);
  return given;
}

}  // namespace

const char* name_of(Binding binding) {
  switch (binding) {
    case Binding::launcher:
      return "launcher";
    case Binding::convoy:
      return "convoy";
    case Binding::openmp:
      return "OpenMP";
    case Binding::shared:
      return "nobody (shared)";
    case Binding::whole:
      return "nobody";
  }
  return "";
}

JobPlacement place(const std::vector<std::string>& hosts, const std::vector<HostView>& given, Bind bind, int threads) {
  JobPlacement placement;
  placement.ranks.resize(hosts.size());
  int fewest = 0;
  for (const auto& [host, here] : ranks_by_host(hosts)) {
    for (std::size_t i = 0; i < here.size(); ++i) {
      RankPlacement& own = placement.ranks[here[i]];
      own.rank = static_cast<int>(here[i]);
      own.node_rank = static_cast<int>(i);
      own.host = host;
      const int good = place_rank(own, here, given, bind), wished = given[here[i]].omp_num_threads;
      const int mine = wished > 0 ? wished : good;
      fewest = fewest == 0 ? mine : std::min(fewest, mine);
    }
  }
  placement.threads = threads > 0 ? threads : std::max(fewest, 1);
  for (RankPlacement& own : placement.ranks) own.threads = placement.threads;
  return placement;
}

JobPlacement place_ranks(Communicator& communicator, const DeviceConfig& config) {
  const auto texts = communicator.all_gather(to_text(look_around(config.device, communicator.node_rank()), getpid()),
                                             "cores of the ranks");
  std::vector<HostView> given(texts.size());
  std::vector<Index> pids(texts.size());
  for (std::size_t r = 0; r < texts.size(); ++r) given[r] = from_text(texts[r], pids[r]);
  JobPlacement placement = place(communicator.hosts(), given, config.bind, config.threads);
  for (std::size_t r = 0; r < texts.size(); ++r) placement.ranks[r].pid = pids[r];
  const RankPlacement& own = placement.ranks[static_cast<std::size_t>(communicator.rank())];
  if (own.binding == Binding::convoy && !keep_to_cores(own.cpus))
    log::warn("cannot run on cores {} alone (the system refuses); they stay shared", print_cpu_list(own.cpus));
  return placement;
}

std::vector<std::string> find_overbooked_cores(const JobPlacement& placement) {
  std::vector<std::string> hosts;
  for (const RankPlacement& own : placement.ranks) hosts.push_back(own.host);
  std::vector<std::string> found;
  for (const auto& [host, here] : ranks_by_host(hosts)) {
    std::set<std::size_t> left(here.begin(), here.end());
    int threads_here = 0;
    for (const std::size_t r : here) threads_here += placement.ranks[r].threads;
    while (!left.empty()) {
      // Ranks that are tied to each other by common cores.
      Ranks group{*left.begin()};
      std::set<int> cpus;
      left.erase(left.begin());
      for (std::size_t i = 0; i < group.size(); ++i) {
        const RankPlacement& one = placement.ranks[group[i]];
        cpus.insert(one.cpus.begin(), one.cpus.end());
        for (auto r = left.begin(); r != left.end();) {
          if (overlap(one.cpus, placement.ranks[*r].cpus)) {
            group.push_back(*r);
            r = left.erase(r);
          } else {
            ++r;
          }
        }
      }
      int threads = 0;
      for (const std::size_t r : group) threads += placement.ranks[r].threads;
      if (threads <= static_cast<int>(cpus.size())) continue;
      std::sort(group.begin(), group.end());
      std::vector<int> ranks(group.begin(), group.end());
      found.push_back(fmt::format("{}: rank{} {} run{} {} threads on {} (cores {})", host, ranks.size() > 1 ? "s" : "",
                                  print_cpu_list(ranks), ranks.size() > 1 ? "" : "s", threads,
                                  cpus.size() == 1 ? "one core" : fmt::format("{} cores", cpus.size()),
                                  print_cpu_list({cpus.begin(), cpus.end()})));
    }
    const double quota = placement.ranks[here.front()].quota;
    if (quota > 0 && threads_here > std::ceil(quota))
      found.push_back(fmt::format("{}: {} threads of {} ranks, but its control group allows {:g} cores", host,
                                  threads_here, here.size(), quota));
  }
  return found;
}

std::vector<SharedDevice> find_shared_devices(const JobPlacement& placement) {
  std::map<std::string, std::vector<int>> owners;
  std::vector<int> without;
  for (const RankPlacement& own : placement.ranks)
    (own.identity.empty() ? without : owners[own.identity]).push_back(own.rank);
  std::vector<SharedDevice> found;
  for (const auto& [device, ranks] : owners) {
    if (ranks.size() > 1)
      found.push_back({fmt::format("{}: {} ranks share {}; start one rank for each GPU and give every rank its own",
                                   placement.ranks[static_cast<std::size_t>(ranks.front())].host, ranks.size(), device),
                       ranks});
  }
  if (!owners.empty() && !without.empty())
    found.push_back(
        {"these ranks have no GPU and others have one; check what the job asks for, or give --device cpu", without});
  return found;
}

namespace {

constexpr std::size_t columns = 8, most_rows_unfolded = 16;
using Row = std::array<std::string, columns>;

std::string list_of(const std::vector<int>& numbers) {
  constexpr std::size_t longest = 24;
  std::string text = print_cpu_list(numbers);
  return text.size() <= longest ? text : fmt::format("{} of {} to {}", numbers.size(), numbers.front(), numbers.back());
}

/// The name of a GPU without what tells it from the next.
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

/// What is left of a table's row is the same.
bool same_row(const RankPlacement& a, const RankPlacement& b) {
  return a.threads == b.threads && a.cores == b.cores && a.binding == b.binding &&
         kind_of(a.device) == kind_of(b.device);
}

/// The rows of one host: runs of equal ranks.
std::vector<Row> rows_of(const std::vector<const RankPlacement*>& here) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < here.size();) {
    std::vector<const RankPlacement*> run{here[i]};
    for (++i; i < here.size() && same_row(*run.front(), *here[i]); ++i) run.push_back(here[i]);
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
