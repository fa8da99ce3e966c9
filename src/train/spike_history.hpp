// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace convoy {

/// What a loss or a gradient norm was in the last intervals, and from which value on it is a spike: `factor` times
/// their median, but never less than `floor`. Until there are enough intervals nothing is a spike.
class SpikeHistory {
 public:
  static constexpr std::size_t fewest = 5, most = 20;

  SpikeHistory(double factor, double floor) : factor_(factor), floor_(floor) {}

  /// The bound that `value` exceeds; nothing: it is no spike.
  std::optional<double> exceeded(double value) const;
  /// Of an interval that was none.
  void add(double value);

  // A checkpoint has them as NAME_0, NAME_1, ..., oldest first.
  void write(const std::string& name, std::map<std::string, double>& numbers) const;
  void read(const std::string& name, const std::map<std::string, double>& numbers);

 private:
  double factor_, floor_;
  std::vector<double> values_;  ///< oldest first
};

}  // namespace convoy
