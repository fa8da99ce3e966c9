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

/// 6.12 images a second need their decimals, 16621 don't.
int decimals_of(double speed) { return speed < 10 ? 2 : speed < 100 ? 1 : 0; }

std::string place(Index at, Index of) {
  return of > 0 ? fmt::format("{:>{}}/{}", at, digits(of), of) : fmt::format("{}", at);
}

}  // namespace

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

std::string_view progress_text(std::span<char> buffer, Index epoch, Index epochs, Index step_in_epoch,
                               Index steps_per_epoch, double images_per_second) {
  const auto end =
      epochs > 0 ? fmt::format_to_n(buffer.data(), buffer.size(), "epoch {}/{} step {}/{} {:.{}f} img/s", epoch, epochs,
                                    step_in_epoch, steps_per_epoch, images_per_second, decimals_of(images_per_second))
                 : fmt::format_to_n(buffer.data(), buffer.size(), "epoch {} step {}/{} {:.{}f} img/s", epoch,
                                    step_in_epoch, steps_per_epoch, images_per_second, decimals_of(images_per_second));
  return {buffer.data(), static_cast<std::size_t>(end.out - buffer.data())};
}

}  // namespace convoy
