// SPDX-License-Identifier: Apache-2.0
// Which ranks repeat a step, and which of them are wrong if the repetitions differ. Nothing here communicates.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// The ranks that compute a step of the first one's replica: that rank itself, another and, if there is one, a third.
/// `check` counts the checks of a run: each rank with a replica (the first `owners`) has its turn, with others each
/// time. Ranks of other hosts are preferred, since a rank that shares a faulty part would repeat the fault.
std::vector<int> choose_repeaters(Index check, int owners, std::span<const std::string> hosts);

/// What one rank computed for a step, as digests.
struct Repetition {
  int rank = 0;
  std::uint64_t first = 0;
  std::uint64_t second = 0;  ///< computed again, from the same weights and batch
};

struct Verdict {
  std::vector<int> wrong;  ///< ranks; if nothing shows which of several is wrong, all of these
  bool certain = true;     ///< false: not all of `wrong` are
  std::string reason;      ///< `repeats its own step with other bits`
};

/// At least two repetitions, of which not all are equal. A rank whose own two differ is wrong. Else those are that
/// disagree with the majority of the hosts: each has one vote, that of most of its ranks, since the ranks of a faulty
/// host may err alike. Where the hosts have no majority, ranks are wrong that disagree with most ranks and with another
/// of their own host. `hosts`: of all ranks.
Verdict judge(std::span<const Repetition> repetitions, std::span<const std::string> hosts);

/// The same for the weights that each rank holds; nothing if all hold the same. `hosts`: of each digest.
std::optional<Verdict> judge_weights(std::span<const std::uint64_t> digests, std::span<const std::string> hosts);

}  // namespace convoy
