// SPDX-License-Identifier: Apache-2.0
#include "train/spike_history.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace convoy {

std::optional<double> SpikeHistory::exceeded(double value) const {
  if (values_.size() < fewest) return std::nullopt;
  std::vector<double> sorted = values_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double bound = std::max(factor_ * *middle, floor_);
  return value > bound ? std::optional(bound) : std::nullopt;
}

void SpikeHistory::add(double value) {
  values_.push_back(value);
  if (values_.size() > most) values_.erase(values_.begin());
}

void SpikeHistory::write(const std::string& name, std::map<std::string, double>& numbers) const {
  for (std::size_t i = 0; i < values_.size(); ++i) numbers[fmt::format("{}_{}", name, i)] = values_[i];
}

void SpikeHistory::read(const std::string& name, const std::map<std::string, double>& numbers) {
  values_.clear();
  for (std::size_t i = 0; i < most; ++i)
    if (const auto at = numbers.find(fmt::format("{}_{}", name, i)); at != numbers.end()) values_.push_back(at->second);
}

}  // namespace convoy
