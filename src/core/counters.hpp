// SPDX-License-Identifier: Apache-2.0
// The numbers that a device counts over samples: a row each, in the order of files and tables. A new one is a name and
// a row here, and its line in the loss of each backend. C++17, since CUDA kernels include it.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/portable.hpp"

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
    {"loss", false, 4, 7, 10},
    {"top1", true, 2, 6, 8},
    {"topk", true, 2, 0, 8},
}};

/// A number a row: sums over samples, or what is shown of them (means, percent). Hits are whole numbers, which a double
/// holds exactly.
struct CounterValues {
  double values[counter_table.size()] = {};
  CONVOY_HD double& operator[](Counter counter) { return values[static_cast<std::size_t>(counter)]; }
  CONVOY_HD double operator[](Counter counter) const { return values[static_cast<std::size_t>(counter)]; }
  double& operator[](std::size_t row) { return values[row]; }
  double operator[](std::size_t row) const { return values[row]; }
};

/// What a device has counted since it was last asked; also in device memory.
struct Counters {
  CounterValues sums;  ///< over samples, unscaled
  std::int64_t samples = 0;
  std::int64_t skipped = 0;  ///< updates masked because a replica wasn't finite
  /// The lowest replica whose flag was set in an update that a lower loss scale could not have saved; -1: none. While a
  /// dynamic loss scale can still be halved, a skipped update is part of training and only counted.
  std::int32_t bad_replica = -1;
  std::int32_t unused = 0;

  void add(const Counters& other) {
    for (std::size_t i = 0; i < counter_table.size(); ++i) sums[i] += other.sums[i];
    samples += other.samples;
    skipped += other.skipped;
    if (other.bad_replica >= 0 && (bad_replica < 0 || other.bad_replica < bad_replica)) bad_replica = other.bad_replica;
  }
};

/// What is shown of sums over so many samples; 0 without samples.
inline CounterValues shown(const CounterValues& sums, std::int64_t samples) {
  CounterValues values;
  if (samples == 0) return values;
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    values[i] = (counter_table[i].percent ? 100.0 : 1.0) * sums[i] / static_cast<double>(samples);
  return values;
}

/// The samples that so many percent of `samples` are.
inline std::int64_t samples_of(double percent, std::int64_t samples) {
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
