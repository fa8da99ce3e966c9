// SPDX-License-Identifier: Apache-2.0
// What was queued, as a graph of numbers that outlives the nodes: is a wait that was forgotten missed by anything?
#include "support/host_cuda/streams.hpp"

namespace host_cuda {
namespace {

struct Entry {
  std::vector<long> after;  ///< smaller numbers
  bool is_work = false;     ///< also what the host does once it has waited
};

struct History {
  std::vector<Entry> entries;
  long host = -1;               ///< the host's last wait: whatever is queued comes behind it
  long event = -1, place = -1;  ///< where the forgotten wait stood
};

History& history() {
  static auto& kept = *new History;
  return kept;
}

long append(Entry entry) {
  history().entries.push_back(std::move(entry));
  return static_cast<long>(history().entries.size()) - 1;
}

using Bits = std::vector<std::uint64_t>;

/// For each entry the work that comes before it, a bit each.
std::vector<Bits> work_before(const std::vector<Entry>& entries) {
  std::vector<Bits> before(entries.size(), Bits(entries.size() / 64 + 1));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const long number : entries[i].after) {
      if (number < 0) continue;
      const auto one = static_cast<std::size_t>(number);
      for (std::size_t word = 0; word <= one / 64; ++word) before[i][word] |= before[one][word];
      if (entries[one].is_work) before[i][one / 64] |= std::uint64_t{1} << one % 64;
    }
  }
  return before;
}

}  // namespace

long note_queued(const std::vector<NodeRef>& after, bool is_work) {
  if (settings().drop_wait < 0) return -1;
  Entry entry{{history().host}, is_work};
  for (const NodeRef& node : after) entry.after.push_back(node->number);
  return append(std::move(entry));
}

void note_host_waited(const Node& node) {
  if (node.number >= 0) history().host = append({{history().host, node.number}, true});
}

void start_without(long wait, Order order) {
  settings() = {};
  settings().order = order;
  settings().drop_wait = wait;
  counts() = {};
  history() = {};
}

void note_forgotten_wait(const Node& event, const Node& place) {
  history().event = event.number;
  history().place = place.number;
}

bool forgot_needless_wait() {
  if (history().place < 0) return false;
  std::vector<Entry> with = history().entries;
  with[static_cast<std::size_t>(history().place)].after.push_back(history().event);
  const std::vector<Bits> needed = work_before(with), found = work_before(history().entries);
  for (std::size_t i = 0; i < with.size(); ++i)
    if (with[i].is_work && needed[i] != found[i]) return false;
  return true;
}

}  // namespace host_cuda
