// SPDX-License-Identifier: Apache-2.0
#include "scaling/fit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// Sums over the timings of m m, m b, b b, m and b, each divided by the seconds: minimises the sum of
/// ((x m + y b - t) / t)^2.
struct Normal {
  double mm = 0, mb = 0, bb = 0, m = 0, b = 0;
};

struct Solution {
  double x = 0, y = 0, x_variance = 0, y_variance = 0;  ///< variances: times that of a relative error
};

Solution solve(const Normal& n) {
  const double determinant = n.mm * n.bb - n.mb * n.mb;
  // Of one size, or sizes between which the times don't change, all is put down to the bytes.
  if (determinant <= 1e-12 * n.mm * n.bb) return {.y = n.b / n.bb, .y_variance = 1 / n.bb};
  Solution both{.x = (n.m * n.bb - n.b * n.mb) / determinant,
                .y = (n.b * n.mm - n.m * n.mb) / determinant,
                .x_variance = n.bb / determinant,
                .y_variance = n.mm / determinant};
  if (both.x < 0) return {.y = n.b / n.bb, .y_variance = 1 / n.bb};
  if (both.y < 0) return {.x = n.m / n.mm, .x_variance = 1 / n.mm};
  return both;
}

Term term(double value, double variance) {
  return {.value = value, .error = value > 0 ? std::min(1.0, 2 * std::sqrt(variance) / value) : 0};
}

}  // namespace

Link fit_link(const std::vector<TimedSum>& timings) {
  require(timings.size() >= 2, "a link is fitted to at least two timings");
  Normal n;
  for (const TimedSum& t : timings) {
    const double m = t.messages / t.seconds, b = t.bytes / t.seconds;
    n.mm += m * m;
    n.mb += m * b;
    n.bb += b * b;
    n.m += m;
    n.b += b;
  }
  const Solution found = solve(n);
  double squares = 0;
  for (const TimedSum& t : timings) {
    const double off = (found.x * t.messages + found.y * t.bytes) / t.seconds - 1;
    squares += off * off;
  }
  const double variance = timings.size() > 2 ? squares / static_cast<double>(timings.size() - 2) : squares;
  return {.seconds_per_message = term(found.x, found.x_variance * variance),
          .seconds_per_byte = term(found.y, found.y_variance * variance),
          .measured = true};
}

double library_messages(int ranks) { return ranks < 2 ? 0 : 2.0 * std::bit_width(static_cast<unsigned>(ranks - 1)); }
double tree_messages(int ranks) { return ranks < 2 ? 0 : 2.0 * (ranks - 1); }
double share_of_ring(int ranks) { return ranks < 2 ? 0 : 2.0 * (ranks - 1) / ranks; }

double overlap_of(double compute, double sums, double both) {
  const double shorter = std::min(compute, sums);
  return shorter > 0 ? std::clamp((compute + sums - both) / shorter, 0.0, 1.0) : 0;
}

}  // namespace convoy
