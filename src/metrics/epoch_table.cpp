// SPDX-License-Identifier: Apache-2.0
#include "metrics/epoch_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "metrics/records.hpp"

namespace convoy {
namespace {

using Value = std::optional<double>;

/// A member of a record, or nothing where there is no record.
template <class Record, class Member>
Value value_of(const std::optional<Record>& record, Member member) {
  return record ? Value(static_cast<double>(std::invoke(member, *record))) : std::nullopt;
}

Value trained(const std::optional<EpochRecord>& record, std::size_t counter) {
  return record ? Value(record->counters[counter]) : std::nullopt;
}

Value validated(const std::optional<ValidationRecord>& record, std::size_t counter) {
  return record ? Value(record->counters[counter]) : std::nullopt;
}

/// `val top5` fits.
int val_width(const CounterRow& row) { return std::max(row.table_width, 9); }

std::string rounded(Value value, int decimals) { return value ? fmt::format("{:.{}f}", *value, decimals) : "-"; }
std::string exact(Value value) { return value ? fmt::format("{}", *value) : ""; }

}  // namespace

void EpochTable::add(const EpochRecord& record, Index step) {
  Row& row = rows_[record.epoch];
  row.training = record;
  row.step = step;
}

void EpochTable::add(const ValidationRecord& record) {
  Row& row = rows_[record.epoch];
  row.validation = record;
  row.validation_seconds += record.seconds;
  k_ = record.k;
}

std::string EpochTable::text() const {
  std::string text = fmt::format("{:>6} {:>8}", "epoch", "hours");
  const auto out = std::back_inserter(text);
  for (const CounterRow& row : counter_table)
    if (row.console_width > 0) fmt::format_to(out, " {:>{}}", row.name, row.table_width);
  const auto shows = [&](std::size_t i) { return k_ != 1 || i != static_cast<std::size_t>(Counter::topk); };
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    if (shows(i)) fmt::format_to(out, " {:>{}}", "val " + name_of(counter_table[i], k_), val_width(counter_table[i]));
  text += '\n';
  double seconds = 0;
  for (const auto& [epoch, row] : rows_) {
    seconds += value_of(row.training, &EpochRecord::seconds).value_or(0) + row.validation_seconds;
    fmt::format_to(out, "{:>6} {:>8.3f}", epoch, seconds / 3600);
    for (std::size_t i = 0; i < counter_table.size(); ++i) {
      const CounterRow& column = counter_table[i];
      if (column.console_width > 0)
        fmt::format_to(out, " {:>{}}", rounded(trained(row.training, i), column.decimals), column.table_width);
    }
    for (std::size_t i = 0; i < counter_table.size(); ++i)
      if (shows(i))
        fmt::format_to(out, " {:>{}}", rounded(validated(row.validation, i), counter_table[i].decimals),
                       val_width(counter_table[i]));
    text += '\n';
  }
  return text;
}

std::vector<EpochRow> EpochTable::rows() const {
  std::vector<EpochRow> all;
  const double unknown = std::nan("");
  double seconds = 0;
  for (const auto& [epoch, row] : rows_) {
    const double training = value_of(row.training, &EpochRecord::seconds).value_or(0);
    seconds += training + row.validation_seconds;
    EpochRow& shown = all.emplace_back();
    shown.epoch = epoch;
    shown.step = row.training ? row.step : row.validation->step;
    shown.hours = seconds / 3600;
    shown.images_per_second = training > 0 ? static_cast<double>(row.training->images) / training : unknown;
    for (std::size_t i = 0; i < counter_table.size(); ++i) {
      shown.training[i] = trained(row.training, i).value_or(unknown);
      shown.validation[i] = validated(row.validation, i).value_or(unknown);
    }
  }
  return all;
}

std::string EpochTable::csv() const {
  std::string text = "epoch,step,images,seconds,hours,";
  for (const CounterRow& row : counter_table)
    if (row.console_width > 0) text += row.name + std::string(",");
  text += "lr,";
  for (const CounterRow& row : counter_table) text += "val_" + name_of(row, k_) + ",";
  text += "images_per_sec,data_time,compute_time,comm_time,limit,val_partial\n";
  const auto speed = [](const EpochRecord& r) { return r.seconds > 0 ? static_cast<double>(r.images) / r.seconds : 0; };
  double seconds = 0;
  for (const auto& [epoch, row] : rows_) {
    const auto training = [&row = row](auto member) { return exact(value_of(row.training, member)); };
    seconds += value_of(row.training, &EpochRecord::seconds).value_or(0) + row.validation_seconds;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{},{},{},{},{:.6f},", epoch, row.training ? row.step : row.validation->step,
                   training(&EpochRecord::images), training(&EpochRecord::seconds), seconds / 3600);
    for (std::size_t i = 0; i < counter_table.size(); ++i)
      if (counter_table[i].console_width > 0) text += exact(trained(row.training, i)) + ",";
    text += training(&EpochRecord::rate) + ",";
    for (std::size_t i = 0; i < counter_table.size(); ++i) text += exact(validated(row.validation, i)) + ",";
    fmt::format_to(out, "{},{},{},{},{},{}\n", training(speed), training(&EpochRecord::data_seconds),
                   training(&EpochRecord::compute_seconds), training(&EpochRecord::comm_seconds),
                   row.training ? limit_of(*row.training) : "",
                   exact(value_of(row.validation, &ValidationRecord::is_partial)));
  }
  return text;
}

}  // namespace convoy
