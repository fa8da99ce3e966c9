// SPDX-License-Identifier: Apache-2.0
// Pictures as SVG text for an HTML page. Colours are CSS classes of the page: `s0` to `s7` for series, `axis`, `grid`.
#pragma once
#include <string>
#include <vector>

#include "report/run_record.hpp"

namespace convoy {

inline constexpr int chart_colours = 8;

struct Line {
  std::string name;
  int colour = 0;
  bool strong = true;  ///< thick with a dot per point; else thin
  Series points;
};

/// What lies along the horizontal axis.
struct Along {
  std::string name = "epoch";
  /// Points are logarithms to this base, and the axis shows its powers, 1, 2, 4 ... 0: they are none, from 0 on.
  int base = 0;
  double shown(double x) const;  ///< what the axis shows at a point
};

/// Lines over epochs, or what `along` says. Of a line with more than 400 points, equal parts are shown by their means.
/// Empty: no line has a number.
std::string line_chart(const std::string& title, const std::string& unit, const std::vector<Line>& lines,
                       const Along& along = {});

/// Seconds per epoch, stacked: data, computation, communication, rest. Empty without epochs.
std::string time_chart(const std::vector<EpochTimes>& times);

/// The work of the slowest, the mean and the fastest rank per epoch. Empty if there was one rank.
std::string rank_chart(const std::vector<EpochTimes>& times);

/// A square per label (row) and predicted class (column), shaded by its share of the row.
std::string confusion_chart(const EvaluationRecord& evaluation);

}  // namespace convoy
