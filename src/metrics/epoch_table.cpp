// SPDX-License-Identifier: Apache-2.0
#include "metrics/epoch_table.hpp"

#include <fmt/format.h>

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
  std::string text = fmt::format("{:>6} {:>8} {:>10} {:>8} {:>10} {:>9} {:>9}\n", "epoch", "hours", "loss", "top1",
                                 "val loss", "val top1", fmt::format("val top{}", k_));
  double seconds = 0;
  for (const auto& [epoch, row] : rows_) {
    seconds += value_of(row.training, &EpochRecord::seconds).value_or(0) + row.validation_seconds;
    fmt::format_to(std::back_inserter(text), "{:>6} {:>8.3f} {:>10} {:>8} {:>10} {:>9} {:>9}\n", epoch, seconds / 3600,
                   rounded(value_of(row.training, &EpochRecord::loss), 4),
                   rounded(value_of(row.training, &EpochRecord::top1), 2),
                   rounded(value_of(row.validation, &ValidationRecord::loss), 4),
                   rounded(value_of(row.validation, &ValidationRecord::top1), 2),
                   rounded(value_of(row.validation, &ValidationRecord::topk), 2));
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
    all.push_back({.epoch = epoch,
                   .step = row.training ? row.step : row.validation->step,
                   .hours = seconds / 3600,
                   .loss = value_of(row.training, &EpochRecord::loss).value_or(unknown),
                   .top1 = value_of(row.training, &EpochRecord::top1).value_or(unknown),
                   .images_per_second = training > 0 ? static_cast<double>(row.training->images) / training : unknown,
                   .val_loss = value_of(row.validation, &ValidationRecord::loss).value_or(unknown),
                   .val_top1 = value_of(row.validation, &ValidationRecord::top1).value_or(unknown),
                   .val_topk = value_of(row.validation, &ValidationRecord::topk).value_or(unknown)});
  }
  return all;
}

std::string EpochTable::csv() const {
  std::string text = fmt::format(
      "epoch,step,images,seconds,hours,loss,top1,lr,val_loss,val_top1,val_top{},images_per_sec,data_time,compute_time,"
      "comm_time,limit\n",
      k_);
  const auto speed = [](const EpochRecord& r) { return r.seconds > 0 ? static_cast<double>(r.images) / r.seconds : 0; };
  double seconds = 0;
  for (const auto& [epoch, row] : rows_) {
    const auto training = [&row = row](auto member) { return exact(value_of(row.training, member)); };
    const auto validation = [&row = row](auto member) { return exact(value_of(row.validation, member)); };
    seconds += value_of(row.training, &EpochRecord::seconds).value_or(0) + row.validation_seconds;
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{:.6f},{},{},{},{},{},{},{},{},{},{},{}\n", epoch,
                   row.training ? row.step : row.validation->step, training(&EpochRecord::images),
                   training(&EpochRecord::seconds), seconds / 3600, training(&EpochRecord::loss),
                   training(&EpochRecord::top1), training(&EpochRecord::rate), validation(&ValidationRecord::loss),
                   validation(&ValidationRecord::top1), validation(&ValidationRecord::topk), training(speed),
                   training(&EpochRecord::data_seconds), training(&EpochRecord::compute_seconds),
                   training(&EpochRecord::comm_seconds), row.training ? limit_of(*row.training) : "");
  }
  return text;
}

}  // namespace convoy
