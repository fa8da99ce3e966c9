// SPDX-License-Identifier: Apache-2.0
#include "metrics/records.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/json.hpp"
#include "metrics/epoch_table.hpp"

namespace convoy {
namespace {

std::string line_of(const Json& record) { return record.text(-1, Json::Order::as_written); }

double ratio(double images, double seconds) { return seconds > 0 ? images / seconds : 0; }

void add_counters(Json& json, const CounterValues& values, int k) {
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    if (is_written(counter_table[i], k)) json[name_of(counter_table[i], k)] = values[i];
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// null (a loss that was not finite) reads as NaN.
double number(const Json& record, const char* name) {
  const Json* found = record.find(name);
  if (found == nullptr) return 0;
  return found->is_number() ? found->as<double>() : std::nan("");
}

Index integer(const Json& record, const char* name) {
  const Json* found = record.find(name);
  return found != nullptr && found->is_integer() ? found->as<Index>() : 0;
}

}  // namespace

StepTimes times_of(const StepRecord& record, Index steps) {
  const auto n = static_cast<double>(std::max<Index>(steps, 1));
  const double known = record.data_seconds + record.compute_seconds + record.comm_seconds;
  return {.step = record.seconds / n,
          .data = record.data_seconds / n,
          .compute = record.compute_seconds / n,
          .comm = record.comm_seconds / n,
          .other = std::max(record.seconds - known, 0.0) / n,
          .images_per_second = ratio(static_cast<double>(record.images), record.seconds)};
}

const char* limit_of(const EpochRecord& record) {
  if (record.data_seconds >= std::max(record.compute_seconds, record.comm_seconds)) return "data";
  return record.comm_seconds > record.compute_seconds ? "comm" : "compute";
}

std::string train_line(const StepRecord& record, Index steps, int ranks, int k) {
  const StepTimes times = times_of(record, steps);
  Json json = Json::object({{"split", "train"},
                            {"epoch", record.epoch},
                            {"step", record.step},
                            {"step_in_epoch", record.step_in_epoch},
                            {"steps_per_epoch", record.steps_per_epoch},
                            {"images", record.images},
                            {"images_seen", record.images_seen}});
  add_counters(json, record.counters, k);
  json.set({{"lr", record.rate},
            {"images_per_sec", times.images_per_second},
            {"images_per_sec_per_rank", times.images_per_second / std::max(ranks, 1)},
            {"ranks", ranks},
            {"seconds", record.seconds},
            {"step_time", times.step},
            {"data_time", times.data},
            {"compute_time", times.compute},
            {"comm_time", times.comm},
            {"other_time", times.other},
            {"eta", record.eta_seconds}});
  return line_of(json);
}

std::string validation_line(const ValidationRecord& record) {
  Json json = Json::object({{"split", "val"},
                            {"epoch", record.epoch},
                            {"step", record.step},
                            {"images", record.images},
                            {"images_seen", record.images_seen}});
  add_counters(json, record.counters, record.k);
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    if (counter_table[i].percent)
      json[counter_table[i].name + std::string("_count")] = samples_of(record.counters[i], record.images);
  json.set({{"k", record.k},
            {"seconds", record.seconds},
            {"images_per_sec", ratio(static_cast<double>(record.images), record.seconds)}});
  if (record.is_partial()) json.set({{"partial", true}, {"split_images", record.split_images}});
  return line_of(json);
}

std::string epoch_line(const EpochRecord& record, Index step) {
  const double known = record.data_seconds + record.compute_seconds + record.comm_seconds;
  Json json = Json::object({{"split", "epoch"},
                            {"epoch", record.epoch},
                            {"step", step},
                            {"images", record.images},
                            {"images_seen", record.images_seen}});
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    if (counter_table[i].console_width > 0) json[counter_table[i].name] = record.counters[i];
  json.set({{"lr", record.rate},
            {"seconds", record.seconds},
            {"images_per_sec", ratio(static_cast<double>(record.images), record.seconds)},
            {"data_time", record.data_seconds},
            {"compute_time", record.compute_seconds},
            {"comm_time", record.comm_seconds},
            {"other_time", std::max(record.seconds - known, 0.0)},
            {"limit", limit_of(record)}});
  if (record.sent_bytes >= 0) json["sent_bytes"] = record.sent_bytes;
  if (record.group_sent_bytes >= 0) json["group_sent_bytes"] = record.group_sent_bytes;
  const RankSpread& ranks = record.ranks;
  if (ranks.most_memory > 0) {
    json["peak_memory"] = static_cast<Index>(ranks.first_memory);
    json["peak_memory_max"] = static_cast<Index>(ranks.most_memory);
  }
  if (ranks.ranks > 1) {
    json.set({{"slowest_rank", ranks.slowest},
              {"slowest_host", ranks.host},
              {"slowest_part", ranks.part},
              {"slowest_excess", ranks.excess}});
    const auto add = [&json](const std::string& name, const Spread& spread) {
      json[name + "_min"] = spread.min;
      json[name + "_mean"] = spread.mean;
      json[name + "_max"] = spread.max;
    };
    add("busy_time", ranks.busy);
    add("data_time", ranks.data);
    add("compute_time", ranks.compute);
    add("comm_time", ranks.comm);
  }
  return line_of(json);
}

std::string run_line(const std::string& what, const std::map<std::string, std::string>& texts,
                     const std::map<std::string, EventNumber>& numbers) {
  Json json = Json::object({{"split", "run"}, {"event", what}, {"time", utc_now()}});
  for (const auto& [name, text] : texts) json[name] = text;
  for (const auto& [name, value] : numbers)
    std::visit([&json, &name = name](const auto number) { json[name] = number; }, value);
  return line_of(json);
}

std::string monitor_line(const std::string& group, Index step, const std::vector<TensorSummary>& summaries) {
  Json tensors = Json::object();
  for (const TensorSummary& summary : summaries) {
    Json& tensor = tensors[summary.name];
    tensor.set({{"norm", summary.norm}, {"min", summary.minimum}, {"max", summary.maximum}, {"mean", summary.mean}});
    if (summary.not_finite > 0) tensor["not_finite"] = summary.not_finite;
  }
  return line_of(Json::object({{"group", group}, {"step", step}, {"tensors", tensors}}));
}

void read_line(const std::string& line, EpochTable& to) {
  const Json record = Json::parse_or_null(line);
  const Json* split = record.find("split");
  if (split == nullptr) return;
  if (*split == "epoch") {
    CounterValues counters{};
    for (std::size_t i = 0; i < counter_table.size(); ++i) counters[i] = number(record, counter_table[i].name);
    to.add(EpochRecord{.epoch = integer(record, "epoch"),
                       .images = integer(record, "images"),
                       .counters = counters,
                       .seconds = number(record, "seconds"),
                       .rate = number(record, "lr"),
                       .data_seconds = number(record, "data_time"),
                       .compute_seconds = number(record, "compute_time"),
                       .comm_seconds = number(record, "comm_time")},
           integer(record, "step"));
  } else if (*split == "val") {
    const Index images = integer(record, "images");
    CounterValues counts{}, counters{};
    for (std::size_t i = 0; i < counter_table.size(); ++i)
      counts[i] = static_cast<double>(integer(record, (counter_table[i].name + std::string("_count")).c_str()));
    counters = shown(counts, images);
    for (std::size_t i = 0; i < counter_table.size(); ++i)
      if (!counter_table[i].percent) counters[i] = number(record, counter_table[i].name);
    to.add(ValidationRecord{.epoch = integer(record, "epoch"),
                            .step = integer(record, "step"),
                            .images = images,
                            .counters = counters,
                            .seconds = number(record, "seconds"),
                            .k = static_cast<int>(integer(record, "k")),
                            .split_images = integer(record, "split_images")});
  }
}

}  // namespace convoy
