// SPDX-License-Identifier: Apache-2.0
#include "report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/text.hpp"

namespace convoy {
namespace {

constexpr std::size_t most_points = 400;
// Of a picture and of its plot, in the units of the SVG.
constexpr double width = 560, height = 300, left = 58, right = 12, top = 34, bottom = 40;
constexpr double plot_width = width - left - right, plot_height = height - top - bottom;

struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double tick = 1;

  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  /// Widens to multiples of a tick of 1, 2 or 5 times a power of ten, about `count` of them.
  void round(int count) {
    if (high - low < 1e-12 * std::max(1.0, std::abs(high))) {
      const double around = high == 0 ? 1 : std::abs(high) * 0.1;
      low -= around;
      high += around;
    }
    const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
    const double digit = rough / power;
    tick = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
    low = std::floor(low / tick + 1e-9) * tick;
    high = std::ceil(high / tick - 1e-9) * tick;
  }
  /// The multiples of the tick that it shows.
  std::vector<double> ticks() const {
    std::vector<double> values;
    for (double i = std::ceil(low / tick - 1e-9); i <= high / tick + 1e-9; ++i)
      values.push_back(i * tick + 0.0);  // + 0: no -0
    return values;
  }
};

Series thinned(const Series& points) {
  if (points.size() <= most_points) return points;
  Series few;
  for (std::size_t part = 0; part < most_points; ++part) {
    const std::size_t begin = part * points.size() / most_points, end = (part + 1) * points.size() / most_points;
    Point mean;
    for (std::size_t i = begin; i < end; ++i) {
      mean.x += points[i].x;
      mean.y += points[i].y;
    }
    const auto count = static_cast<double>(end - begin);
    few.push_back({mean.x / count, mean.y / count});
  }
  return few;
}

/// A plot with axes, whose content is added between the constructor and finish().
class Plot {
 public:
  Plot(const std::string& title, const std::string& unit, Axis x, Axis y, const Along& along = {}) : x_(x), y_(y) {
    svg_ = fmt::format(
        R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}"><text class="title" x="{}" y="18">{}</text>)", width,
        height, html_text(title), left, html_text(title));
    for (const double value : y_.ticks()) {
      const double at = this->y(value);
      svg_ += fmt::format(
          R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text class="axis" text-anchor="end" x="{}" y="{:.1f}">{:.6g}</text>)",
          left, width - right, at, at, left - 6, at + 4, value);
    }
    for (const double value : x_.ticks()) {
      svg_ += fmt::format(R"(<text class="axis" text-anchor="middle" x="{:.1f}" y="{}">{:.6g}</text>)", this->x(value),
                          height - bottom + 16, along.shown(value));
    }
    svg_ += fmt::format(
        R"(<text class="axis" text-anchor="middle" x="{}" y="{}">{}</text><text class="axis" text-anchor="end" x="{}" y="18">{}</text>)",
        left + plot_width / 2, height - 8, html_text(along.name), width - right, html_text(unit));
  }
  double x(double value) const { return left + (value - x_.low) / (x_.high - x_.low) * plot_width; }
  double y(double value) const { return top + (y_.high - value) / (y_.high - y_.low) * plot_height; }
  void add(const std::string& shape) { svg_ += shape; }

  /// Interrupted where a point has no number.
  void add_line(const Line& line, std::string_view style) {
    std::string path;
    bool down = false;
    for (const Point& p : line.points) {
      const bool finite = std::isfinite(p.y);
      if (finite) path += fmt::format("{}{:.1f} {:.1f}", down ? "L" : "M", x(p.x), y(p.y));
      down = finite;
    }
    svg_ += fmt::format(R"(<path class="s{} {}" d="{}"><title>{}</title></path>)", line.colour, style, path,
                        html_text(line.name));
  }
  std::string finish() { return svg_ + "</svg>"; }

 private:
  Axis x_, y_;
  std::string svg_;
};

/// Names beside squares of their colours, below the picture.
std::string legend(const std::vector<Line>& lines) {
  if (lines.size() == 1) return "";  // the title says it
  std::string text = "<figcaption>";
  for (const Line& line : lines)
    text += fmt::format(R"(<span><i class="b{}{}"></i>{}</span> )", line.colour, line.strong ? "" : " thin",
                        html_text(line.name));
  return text + "</figcaption>";
}

std::string figure(const std::string& content) { return "<figure>" + content + "</figure>\n"; }

/// A range of epochs, with ticks at whole ones.
Axis epochs(double low, double high) {
  Axis rounded{.low = low, .high = high};
  rounded.round(8);
  return {.low = low, .high = high, .tick = std::max(1.0, rounded.tick)};
}

}  // namespace

double Along::shown(double x) const { return base == 0 ? x : std::pow(base, x); }

std::string line_chart(const std::string& title, const std::string& unit, const std::vector<Line>& lines,
                       const Along& along) {
  Axis x, y;
  std::vector<Line> shown;
  for (const Line& line : lines) {
    Line few = line;
    few.points = thinned(line.points);
    Axis own;
    for (const Point& p : few.points) own.take(p.y);
    if (own.empty()) continue;
    for (const Point& p : few.points) {
      x.take(p.x);
      y.take(p.y);
    }
    shown.push_back(std::move(few));
  }
  if (shown.empty()) return "";
  y.round(5);
  // Learning rates lie below 1, so their logarithms below 0.
  Plot plot(title, unit, epochs(std::min(0.0, std::floor(x.low)), std::max(std::ceil(x.high), x.high > 0 ? 1.0 : 0.0)),
            y, along);
  for (const Line& line : shown) {
    plot.add_line(line, line.strong ? "strong" : "thin");
    if (!line.strong || line.points.size() > 100) continue;
    for (const Point& p : line.points) {
      if (!std::isfinite(p.y)) continue;
      plot.add(fmt::format(
          R"(<circle class="b{}" cx="{:.1f}" cy="{:.1f}" r="2.6"><title>{}, {} {:.4g}: {:.5g}</title></circle>)",
          line.colour, plot.x(p.x), plot.y(p.y), html_text(line.name), html_text(along.name), along.shown(p.x), p.y));
    }
  }
  return figure(plot.finish() + legend(shown));
}

std::string time_chart(const std::vector<EpochTimes>& times) {
  if (times.empty()) return "";
  constexpr std::array<const char*, 4> names{"data", "computation", "communication", "rest"};
  // More bars than this can't be told apart; then each stands for the mean of its epochs.
  const std::size_t bars = std::min<std::size_t>(times.size(), 100);
  Axis y;
  y.take(0);
  std::vector<std::array<double, 4>> parts;
  for (std::size_t bar = 0; bar < bars; ++bar) {
    const std::size_t begin = bar * times.size() / bars, end = (bar + 1) * times.size() / bars;
    std::array<double, 4> mean{};
    for (std::size_t i = begin; i < end; ++i) {
      const std::array<double, 4> of{times[i].data, times[i].compute, times[i].comm, times[i].other};
      for (std::size_t k = 0; k < of.size(); ++k)
        if (std::isfinite(of[k])) mean[k] += of[k] / static_cast<double>(end - begin);
    }
    y.take(mean[0] + mean[1] + mean[2] + mean[3]);
    parts.push_back(mean);
  }
  y.round(5);
  const auto first = static_cast<double>(times.front().epoch), last = static_cast<double>(times.back().epoch);
  Plot plot("Time per epoch", "s", epochs(first - 0.5, last + 0.5), y);
  const double step = plot_width / static_cast<double>(bars);
  std::vector<Line> caption;
  for (std::size_t k = 0; k < names.size(); ++k)
    caption.push_back({.name = names[k], .colour = static_cast<int>(k), .points = {}});
  for (std::size_t bar = 0; bar < bars; ++bar) {
    double below = 0;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const double value = parts[bar][k], y0 = plot.y(below), y1 = plot.y(below + value);
      below += value;
      if (y0 - y1 < 0.05) continue;
      plot.add(fmt::format(
          R"(<rect class="b{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}: {:.4g} s</title></rect>)",
          k, left + static_cast<double>(bar) * step + step * 0.1, y1, step * 0.8, y0 - y1, names[k], value));
    }
  }
  return figure(plot.finish() + legend(caption));
}

std::string rank_chart(const std::vector<EpochTimes>& times) {
  std::vector<Line> lines{{.name = "slowest rank", .colour = 1, .points = {}},
                          {.name = "mean", .colour = 0, .points = {}},
                          {.name = "fastest rank", .colour = 2, .points = {}}};
  for (const EpochTimes& t : times) {
    if (t.slowest.empty()) continue;
    const auto epoch = static_cast<double>(t.epoch);
    lines[0].points.push_back({epoch, t.busy_max});
    lines[1].points.push_back({epoch, t.busy_mean});
    lines[2].points.push_back({epoch, t.busy_min});
  }
  return line_chart("Own work of the ranks per epoch", "s", lines);
}

std::string confusion_chart(const EvaluationRecord& evaluation) {
  const std::size_t classes = evaluation.classes.size();
  if (classes == 0) return "";
  const double cell = std::clamp(560.0 / static_cast<double>(classes), 4.0, 40.0);
  const auto shortened = [](const std::string& name) { return name.size() <= 20 ? name : name.substr(0, 18) + ".."; };
  std::size_t longest = 0;
  for (const std::string& name : evaluation.classes) longest = std::max(longest, shortened(name).size());
  const double names = cell >= 9 ? 10 + 6.5 * static_cast<double>(longest) : 8;
  const double side = cell * static_cast<double>(classes);
  std::string svg = fmt::format(
      R"(<svg class="matrix" viewBox="0 0 {:.0f} {:.0f}" style="max-width:{:.0f}px" role="img" aria-label="confusion matrix">)",
      names + side + 8, side + names, names + side + 8);
  for (std::size_t label = 0; label < classes; ++label) {
    const auto& row = evaluation.confusion[label];
    Index sum = 0;
    for (const Index count : row) sum += count;
    const double y = cell * static_cast<double>(label), middle = y + cell / 2;
    if (cell >= 9) {
      const std::string name = html_text(shortened(evaluation.classes[label]));
      svg += fmt::format(R"(<text class="axis" text-anchor="end" x="{}" y="{:.1f}">{}</text>)", names - 6, middle + 4,
                         name);
      svg += fmt::format(
          R"(<text class="axis" text-anchor="end" transform='translate({:.1f} {:.1f}) rotate(-90)' x="0" y="4">{}</text>)",
          names + middle, side + 6, name);
    }
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      if (row[predicted] == 0) continue;
      const double share = static_cast<double>(row[predicted]) / static_cast<double>(std::max<Index>(sum, 1));
      const double x = names + cell * static_cast<double>(predicted);
      svg += fmt::format(
          R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill-opacity="{:.2f}"><title>{} taken for {}: {}</title></rect>)",
          label == predicted ? "hit" : "miss", x, y, cell, cell, 0.08 + 0.92 * share,
          html_text(evaluation.classes[label]), html_text(evaluation.classes[predicted]), row[predicted]);
      if (cell >= 24)
        svg += fmt::format(R"(<text class="axis{}" text-anchor="middle" x="{:.1f}" y="{:.1f}">{}</text>)",
                           share > 0.5 ? " on" : "", x + cell / 2, middle + 4, row[predicted]);
    }
  }
  svg += fmt::format(R"(<rect class="frame" x="{}" y="0" width="{:.1f}" height="{:.1f}"/></svg>)", names, side, side);
  return figure(svg +
                "<figcaption>Rows: labels. Columns: predictions. The shade is the share of the row.</figcaption>");
}

}  // namespace convoy
