// SPDX-License-Identifier: Apache-2.0
// The numbers that a device counts over samples: a row each, in the order of files and tables. A new one is a row here,
// a member of Counters (backend/backend.hpp), which engine/evaluator.hpp reads, and its line in each backend's loss.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/types.hpp"

namespace convoy {

enum class Counter : std::uint8_t { loss, top1, topk };

struct CounterRow {
  const char* name;   ///< `topk` is written with its number: `top5`
  bool percent;       ///< a share of the samples, counted in whole samples; else a mean over samples
  int decimals;       ///< on the console and in tables
  int console_width;  ///< 0: only in files, and in tables of validations
  int table_width;    ///< of a column
};

inline constexpr std::array<CounterRow, 3> counter_table{{
    {.name = "loss", .percent = false, .decimals = 4, .console_width = 7, .table_width = 10},
    {.name = "top1", .percent = true, .decimals = 2, .console_width = 6, .table_width = 8},
    {.name = "topk", .percent = true, .decimals = 2, .console_width = 0, .table_width = 8},
}};

/// A number a row: sums over samples, or what is shown of them (means, percent).
class CounterValues : public std::array<double, counter_table.size()> {
 public:
  double& operator[](Counter counter) { return at(static_cast<std::size_t>(counter)); }
  double operator[](Counter counter) const { return at(static_cast<std::size_t>(counter)); }
  using std::array<double, counter_table.size()>::operator[];

  CounterValues& operator+=(const CounterValues& other) {
    for (std::size_t i = 0; i < size(); ++i) (*this)[i] += other[i];
    return *this;
  }
};

/// What is shown of sums over so many samples; 0 without samples.
inline CounterValues shown(const CounterValues& sums, Index samples) {
  CounterValues values{};
  if (samples == 0) return values;
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = (counter_table[i].percent ? 100.0 : 1.0) * sums[i] / static_cast<double>(samples);
  return values;
}

/// The samples that so many percent of `samples` are.
inline Index samples_of(double percent, Index samples) {
  return std::llround(percent * static_cast<double>(samples) / 100);
}

/// `loss`, `top5`.
inline std::string name_of(const CounterRow& row, int k) {
  const std::string name = row.name;
  return name == "topk" ? "top" + std::to_string(k) : name;
}

/// top1 says it already.
inline bool is_written(const CounterRow& row, int k) { return k > 1 || std::string(row.name) != "topk"; }

}  // namespace convoy
