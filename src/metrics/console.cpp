// SPDX-License-Identifier: Apache-2.0
#include "metrics/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "metrics/records.hpp"

namespace convoy {
namespace {

int digits(Index n) {
  int count = 1;
  for (; n >= 10; n /= 10) ++count;
  return count;
}

/// 6.12 images per second need their decimals, 16621 don't.
int decimals_of(double speed) { return speed < 10 ? 2 : speed < 100 ? 1 : 0; }

std::string place(Index at, Index of) {
  return of > 0 ? fmt::format("{:>{}}/{}", at, digits(of), of) : fmt::format("{}", at);
}

}  // namespace

std::string tell_part(const ValidationRecord& record) {
  if (!record.is_partial()) return {};
  return fmt::format("; of a part of the split: {} of its {} images (--limit-val-batches)", record.images,
                     record.split_images);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const auto whole = static_cast<Index>(std::llround(std::min(seconds, 1e12)));
  const Index days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
}

std::string step_text(const StepRecord& record, Index steps, Index epochs) {
  const StepTimes times = times_of(record, steps);
  std::string counters;
  for (std::size_t i = 0; i < counter_table.size(); ++i) {
    const CounterRow& row = counter_table[i];
    if (row.console_width > 0)
      counters += fmt::format("{} {:>{}.{}f} ", row.name, record.counters[i], row.console_width, row.decimals);
  }
  return fmt::format(
      "epoch {} step {} | {:>7.{}f} img/s | {}| lr {:<8.4g} | data {:>6.1f} compute {:>6.1f} comm {:>6.1f} other {:>5.1f} ms | eta {}",
      place(record.epoch, epochs), place(record.step_in_epoch, record.steps_per_epoch), times.images_per_second,
      decimals_of(times.images_per_second), counters, record.rate, 1e3 * times.data, 1e3 * times.compute,
      1e3 * times.comm, 1e3 * times.other, duration_text(record.eta_seconds));
}

std::string_view progress_text(std::span<char> buffer, const StepProgress& now, Index epochs) {
  char* at = buffer.data();
  const auto add = [&](auto text, const auto&... values) {
    const auto room = static_cast<std::size_t>(buffer.data() + buffer.size() - at);
    at = fmt::format_to_n(at, room, text, values...).out;
  };
  add(FMT_STRING("epoch {}"), now.epoch);
  if (epochs > 0) add(FMT_STRING("/{}"), epochs);
  add(FMT_STRING(" step {}/{}"), now.step_in_epoch, now.steps_per_epoch);
  if (std::isfinite(now.images_per_second))
    add(FMT_STRING(" | {:.{}f} img/s"), now.images_per_second, decimals_of(now.images_per_second));
  if (std::isfinite(now.loss)) add(FMT_STRING(" | loss {:.4f}"), now.loss);
  if (std::isfinite(now.eta_seconds)) add(FMT_STRING(" | eta {}"), duration_text(now.eta_seconds));
  return {buffer.data(), static_cast<std::size_t>(at - buffer.data())};
}

}  // namespace convoy
