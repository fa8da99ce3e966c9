// SPDX-License-Identifier: Apache-2.0
#include "preprocess/sources/scan.hpp"

#include <map>
#include <set>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "preprocess/agree.hpp"
#include "preprocess/fields.hpp"

namespace convoy::preparation {
namespace {

/// Collective. Rank 0 warns of what no listing of any rank took, once for each kind.
void warn_of_left_out(Communicator& comm, const std::vector<OpenSplit>& splits) {
  std::vector<std::string> own;  // kind, address, kind, address ...
  for (const OpenSplit& split : splits) {
    for (const auto& [address, what] : split.store->left_out()) own.insert(own.end(), {what, address});
  }
  const auto of_ranks = comm.all_gather(to_text(own), "what is left out");
  if (comm.rank() != 0) return;
  std::map<std::string, std::set<std::string>> kinds;
  for (const auto& text : of_ranks) {
    std::vector<std::string> found;
    from_text(text, found);
    for (std::size_t i = 0; i + 1 < found.size(); i += 2) kinds[found[i]].insert(found[i + 1]);
  }
  for (const auto& [what, addresses] : kinds) {
    log::warn("'{}' is {}: left out{}", *addresses.begin(), what,
              addresses.size() > 1 ? fmt::format(" (the first of {} such)", addresses.size()) : "");
  }
}

}  // namespace

Scan scan_splits(Communicator& comm, const PrepareSpec& spec, std::vector<OpenSplit>& splits,
                 const ClassList& classes) {
  std::string text;
  agree(comm, "listing the source", [&] {
    if (comm.rank() != 0) return;
    std::vector<Container> all;
    for (std::size_t i = 0; i < splits.size(); ++i) {
      for (Container& container : spec.kind->list(spec, splits[i], classes)) {
        container.split = i;
        all.push_back(std::move(container));
      }
    }
    text = to_text(all);
  });
  comm.broadcast(text, "list of the source");
  std::vector<Container> containers;
  from_text(text, containers);
  std::vector<ShardList> own;
  agree(comm, "looking into the source", [&] {
    for (std::size_t i = static_cast<std::size_t>(comm.rank()); i < containers.size();
         i += static_cast<std::size_t>(comm.size())) {
      spec.kind->cut(spec, splits[containers[i].split], containers[i], own.emplace_back());
    }
  });
  std::vector<std::vector<ShardList>> of_ranks;
  for (const auto& list : comm.all_gather(to_text(own), "shards of the source"))
    from_text(list, of_ranks.emplace_back());
  warn_of_left_out(comm, splits);
  Scan scan;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const ShardList& found = of_ranks[i % of_ranks.size()][i / of_ranks.size()];
    scan.shards.insert(scan.shards.end(), found.shards().begin(), found.shards().end());
    if (!found.goes_on()) scan.digest = fmt::format("{:016x}", hash_text(scan.digest + found.digest()));
    scan.trace.append(found.trace());
    scan.objects += found.objects();
    for (const Count& count : found.left_out()) scan.left_out[count.what] += count.files;
  }
  return scan;
}

}  // namespace convoy::preparation
