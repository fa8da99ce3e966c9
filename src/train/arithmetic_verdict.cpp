// SPDX-License-Identifier: Apache-2.0
#include "train/arithmetic_verdict.hpp"

#include <algorithm>
#include <map>

#include "core/errors.hpp"

namespace convoy {
namespace {

using Digests = std::vector<std::uint64_t>;

/// The value that more than half of `voters` have; nothing: there is none.
std::optional<std::uint64_t> majority(const Digests& values, std::size_t voters) {
  for (const std::uint64_t value : values) {
    const auto same = std::count(values.begin(), values.end(), value);
    if (2 * static_cast<std::size_t>(same) > voters) return value;
  }
  return std::nullopt;
}

/// The right value; nothing: nobody can tell. `hosts`: of each value.
std::optional<std::uint64_t> find_right(std::span<const std::uint64_t> values, std::span<const std::string> hosts) {
  std::map<std::string, Digests> by_host;
  for (std::size_t i = 0; i < values.size(); ++i) by_host[hosts[i]].push_back(values[i]);
  Digests votes;
  for (const auto& [host, own] : by_host)
    if (const auto vote = majority(own, own.size())) votes.push_back(*vote);
  if (const auto right = majority(votes, by_host.size())) return right;
  // A host whose ranks disagree is faulty whatever the others say.
  const auto most = majority({values.begin(), values.end()}, values.size());
  const bool all_hosts_have_it = most && std::all_of(by_host.begin(), by_host.end(), [&](const auto& one) {
                                   return std::find(one.second.begin(), one.second.end(), *most) != one.second.end();
                                 });
  return all_hosts_have_it ? most : std::nullopt;
}

}  // namespace

std::vector<int> choose_repeaters(Index check, int owners, std::span<const std::string> hosts) {
  require(owners >= 2, "a step is repeated by another rank");
  const int checked = static_cast<int>(check % owners);
  std::vector<int> chosen{checked};
  const auto shares_host = [&](int rank) {
    return std::any_of(chosen.begin(), chosen.end(), [&](int other) {
      return hosts[static_cast<std::size_t>(other)] == hosts[static_cast<std::size_t>(rank)];
    });
  };
  // The number of the check's round over the ranks decides which rank comes first.
  const int shift = static_cast<int>(check / owners % (owners - 1));
  std::vector<int> others;
  others.reserve(static_cast<std::size_t>(owners));
  for (int i = 0; i < owners - 1; ++i) others.push_back((checked + 1 + (shift + i) % (owners - 1)) % owners);
  while (chosen.size() < 3 && !others.empty()) {
    auto next = std::find_if(others.begin(), others.end(), [&](int rank) { return !shares_host(rank); });
    if (next == others.end()) next = others.begin();
    chosen.push_back(*next);
    others.erase(next);
  }
  return chosen;
}

Verdict judge(std::span<const Repetition> repetitions, std::span<const std::string> hosts) {
  Verdict verdict;
  Digests firsts;
  std::vector<std::string> hosts_of_firsts;
  for (const Repetition& own : repetitions) {
    firsts.push_back(own.first);
    hosts_of_firsts.push_back(hosts[static_cast<std::size_t>(own.rank)]);
    if (own.first != own.second) verdict.wrong.push_back(own.rank);
  }
  if (!verdict.wrong.empty()) {
    verdict.reason = "computed the same step twice with different bits";
    return verdict;
  }
  const auto right = find_right(firsts, hosts_of_firsts);
  for (const Repetition& own : repetitions)
    if (!right || own.first != *right) verdict.wrong.push_back(own.rank);
  verdict.certain = right.has_value();
  verdict.reason = right ? "computed other bits for the same step than the ranks that repeated it"
                         : "computed different bits for the same step, each the same bits twice";
  return verdict;
}

std::optional<Verdict> judge_weights(std::span<const std::uint64_t> digests, std::span<const std::string> hosts) {
  if (std::all_of(digests.begin(), digests.end(), [&](std::uint64_t own) { return own == digests.front(); }))
    return std::nullopt;
  const auto right = find_right(digests, hosts);
  Verdict verdict{.wrong = {}, .certain = right.has_value(), .reason = {}};
  for (std::size_t rank = 0; rank < digests.size(); ++rank)
    if (!right || digests[rank] != *right) verdict.wrong.push_back(static_cast<int>(rank));
  verdict.reason =
      right ? "held other weights than most ranks, though all had received the same values from the all-reduces"
            : "held different weights, though all had received the same values from the all-reduces";
  return verdict;
}

}  // namespace convoy
