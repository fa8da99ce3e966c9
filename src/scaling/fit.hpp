// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "scaling/machine.hpp"

namespace convoy {

/// A timed sum over ranks.
struct TimedSum {
  double messages = 0;  ///< one after the other
  double bytes = 0;     ///< over a link: 2 (R - 1) / R of the array
  double seconds = 0;
};

/// The link that explains the timings best, by least squares of relative errors: small sums tell the latency, large
/// ones the bandwidth, and none of them outweighs the others. Neither is below 0. At least two sizes.
Link fit_link(const std::vector<TimedSum>& timings);

/// Of an all-reduce of the library over so many ranks.
double library_messages(int ranks);
/// Of a tree.
double tree_messages(int ranks);
/// 2 (R - 1) / R.
double share_of_ring(int ranks);

/// From computation alone, sums alone, and both together: 1 if the shorter one is hidden, 0 if nothing is.
double overlap_of(double compute, double sums, double both);

}  // namespace convoy
