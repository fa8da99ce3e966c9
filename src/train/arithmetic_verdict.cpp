// SPDX-License-Identifier: Apache-2.0
#include "train/arithmetic_verdict.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// The value that more than half have; nothing: there is none.
std::optional<std::uint64_t> majority(std::span<const std::uint64_t> values) {
  for (const std::uint64_t value : values) {
    const auto same = std::count(values.begin(), values.end(), value);
    if (2 * static_cast<std::size_t>(same) > values.size()) return value;
  }
  return std::nullopt;
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

Verdict judge(std::span<const Repetition> repetitions) {
  Verdict verdict;
  std::vector<std::uint64_t> firsts;
  for (const Repetition& own : repetitions) {
    firsts.push_back(own.first);
    if (own.first != own.second) verdict.wrong.push_back(own.rank);
  }
  if (!verdict.wrong.empty()) {
    verdict.reason = "computed the same step twice with different bits";
    return verdict;
  }
  const auto right = majority(firsts);
  for (const Repetition& own : repetitions)
    if (!right || own.first != *right) verdict.wrong.push_back(own.rank);
  verdict.certain = right.has_value();
  verdict.reason = right ? "computed other bits for the same step than the ranks that repeated it"
                         : "computed different bits for the same step, each the same bits twice";
  return verdict;
}

std::optional<Verdict> judge_weights(std::span<const std::uint64_t> digests) {
  if (std::all_of(digests.begin(), digests.end(), [&](std::uint64_t own) { return own == digests.front(); }))
    return std::nullopt;
  const auto right = majority(digests);
  Verdict verdict{.wrong = {}, .certain = right.has_value(), .reason = {}};
  for (std::size_t rank = 0; rank < digests.size(); ++rank)
    if (!right || digests[rank] != *right) verdict.wrong.push_back(static_cast<int>(rank));
  verdict.reason =
      right ? "held other weights than most ranks, though all had received the same values from the all-reduces"
            : "held different weights, though all had received the same values from the all-reduces";
  return verdict;
}

}  // namespace convoy
