// SPDX-License-Identifier: Apache-2.0
#include "infer/prediction.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/json.hpp"
#include "core/text.hpp"

namespace convoy {
namespace {

/// Rounds to a millionth, as the other formats print.
double rounded(double probability) { return std::round(probability * 1e6) / 1e6; }

}  // namespace

std::vector<ClassProbability> likeliest(const float* logits, Index classes, int k) {
  std::vector<Index> order(static_cast<std::size_t>(classes));
  std::iota(order.begin(), order.end(), Index{0});
  const auto count = static_cast<std::ptrdiff_t>(std::min<Index>(k, classes));
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [&](Index a, Index b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  const double top = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (Index c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - top);
  std::vector<ClassProbability> result;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Index c = order[static_cast<std::size_t>(i)];
    result.push_back({c, std::exp(static_cast<double>(logits[c]) - top) / sum});
  }
  return result;
}

std::string print_head(PredictFormat format, int k) {
  if (format != PredictFormat::csv) return {};
  std::string line = "name,label,error";
  for (int i = 1; i <= k; ++i) line += fmt::format(",class{0},name{0},probability{0}", i);
  return line + "\n";
}

std::string print(const Prediction& p, PredictFormat format, const std::vector<std::string>& class_names) {
  const auto name_of = [&](Index c) { return class_name(class_names, c); };
  if (format == PredictFormat::json) {
    Json line = Json::object({{"name", p.name}});
    if (p.label >= 0) line["label"] = p.label;
    if (!p.error.empty()) line["error"] = p.error;
    for (const auto& [index, probability] : p.classes)
      line["classes"].add(
          Json::object({{"class", index}, {"name", name_of(index)}, {"probability", rounded(probability)}}));
    return line.text(-1, Json::Order::as_written) + "\n";
  }
  if (format == PredictFormat::csv) {
    std::string line =
        fmt::format("{},{},{}", csv_field(p.name), p.label >= 0 ? std::to_string(p.label) : "", csv_field(p.error));
    for (const auto& [index, probability] : p.classes)
      line += fmt::format(",{},{},{:.6f}", index, csv_field(name_of(index)), probability);
    return line + "\n";
  }
  if (!p.error.empty()) return one_line(fmt::format("{}: {}", p.name, p.error)) + "\n";
  std::string text = one_line(p.name + (p.label >= 0 ? fmt::format(" (label {})", name_of(p.label)) : "")) + "\n";
  for (const auto& [index, probability] : p.classes)
    text += fmt::format("  {:6.2f} %  {}\n", 100 * probability, one_line(name_of(index)));
  return text;
}

}  // namespace convoy
