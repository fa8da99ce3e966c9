// SPDX-License-Identifier: Apache-2.0
#include "cli/step_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A table for people: long lists of nodes are cut.
std::string shortened(const std::string& text, std::size_t length) {
  return text.size() <= length ? text : text.substr(0, length - 3) + "...";
}

const char* direction_of(const ProgramPart& part) {
  if (part.again) return "again";
  return part.backward ? "backward" : "forward";
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

}  // namespace

StepProfile::StepProfile(std::vector<ProgramPart> parts, const Ceilings& ceilings, Index samples)
    : ceilings_(ceilings), samples_(samples) {
  for (ProgramPart& part : parts) rows_.push_back({std::move(part), {}});
}

void StepProfile::add(const std::vector<double>& part_seconds, double step_seconds) {
  require(part_seconds.size() == rows_.size(), "times of another number of parts");
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].seconds.push_back(part_seconds[i]);
  steps_.push_back(step_seconds);
  // Not the difference of the medians, which scatter: it could be negative.
  outside_.push_back(step_seconds - std::accumulate(part_seconds.begin(), part_seconds.end(), 0.0));
}

double StepProfile::roofline_seconds(const ProgramPart& part) const {
  return std::max(part.flops / ceilings_.flops_per_second, part.bytes / ceilings_.bytes_per_second);
}

std::string StepProfile::text() const {
  std::string text = fmt::format(
      "where the time of a step goes; roofline: {:.1f} GFLOP/s (1x1 convolution, 512 channels), {:.1f} GB/s (copy), as measured now\n"
      "{:>9} {:>6} {:>9} {:>10} {:>9} {:>8} {:>9}  {:<8} {}\n",
      ceilings_.flops_per_second / 1e9, ceilings_.bytes_per_second / 1e9, "ms", "%", "GFLOP", "GFLOP/s", "MB", "GB/s",
      "roofline", "", "nodes | kernels");
  std::vector<std::pair<double, const Row*>> order;
  double total = 0, flops = 0, bytes = 0, roofline = 0;
  for (const Row& row : rows_) {
    order.emplace_back(median_of(row.seconds), &row);
    total += order.back().first;
    flops += row.part.flops;
    bytes += row.part.bytes;
    roofline += roofline_seconds(row.part);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const double step = median_of(steps_), outside = median_of(outside_);
  const auto line = [&](double seconds, double part_flops, double part_bytes, double best, const std::string& what) {
    const double rate = seconds > 0 ? 1 / seconds : 0;
    text += fmt::format("{:>9.3f} {:>6.1f} {:>9.3f} {:>10.1f} {:>9.2f} {:>8.1f} {:>8.1f}%  {}\n", seconds * 1e3,
                        step > 0 ? 100 * seconds / step : 0, part_flops / 1e9, part_flops * rate / 1e9,
                        part_bytes / 1e6, part_bytes * rate / 1e9, 100 * best * rate, what);
  };
  for (const auto& [seconds, row] : order)
    line(seconds, row->part.flops, row->part.bytes, roofline_seconds(row->part),
         fmt::format("{:<8} {} | {}", direction_of(row->part), shortened(row->part.nodes, 60), row->part.kernels));
  line(total, flops, bytes, roofline, "all parts");
  text += fmt::format("{:>9.3f} {:>6.1f}  outside the parts: update, all-reduce, launches\n", outside * 1e3,
                      step > 0 ? 100 * outside / step : 0);
  text += fmt::format("{:>9.3f} {:>6.1f}  a step of {} images (medians of {} steps)\n", step * 1e3, 100.0, samples_,
                      steps_.size());
  return text;
}

std::string StepProfile::csv() const {
  std::string csv = "part,direction,seconds,flop,bytes,roofline_seconds,nodes,kernels\n";
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const ProgramPart& part = rows_[i].part;
    csv += fmt::format("{},{},{:.9f},{:.0f},{:.0f},{:.9f},{},{}\n", i, direction_of(part), median_of(rows_[i].seconds),
                       part.flops, part.bytes, roofline_seconds(part), quoted(part.nodes), quoted(part.kernels));
  }
  return csv;
}

}  // namespace convoy
