// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "io/file.hpp"
#include "metrics/console.hpp"
#include "metrics/epoch_table.hpp"
#include "metrics/event_file.hpp"
#include "metrics/journal.hpp"
#include "metrics/records.hpp"

namespace convoy {

struct Metrics::State {
  explicit State(const MetricsSpec& metrics_spec);
  void append(const std::string& line) {
    if (journal) journal->append(line);
  }
  Journal::Start start() const { return spec.append ? Journal::Start::resume : Journal::Start::fresh; }
  void open_monitor() { monitor.emplace(spec.folder + "/monitor.jsonl", start(), spec.resume_step); }
  void write_summary();
  void open_events();

  MetricsSpec spec;
  std::optional<Journal> journal;
  std::optional<Journal> monitor;  ///< opened by the first record, or because an earlier run left one
  std::optional<EventFile> events;
  EpochTable table;
  Index last_step = 0;  ///< of the newest train record: intervals reach from there
  bool summary_broken = false;
  std::array<char, 160> progress{};
};

Metrics::State::State(const MetricsSpec& metrics_spec)
    : spec(metrics_spec),
      last_step(!spec.append          ? 0
                : spec.begin_step < 0 ? spec.resume_step
                                      : spec.begin_step) {
  if (spec.folder.empty()) return;
  journal.emplace(spec.folder + "/metrics.jsonl", start(), spec.resume_step, spec.validated_step, spec.resume_epoch);
  for (const std::string& line : journal->kept()) read_line(line, table);
  if (!table.empty()) write_summary();
  std::error_code unknown;
  if (std::filesystem::exists(spec.folder + "/monitor.jsonl", unknown)) open_monitor();
  if (spec.tensorboard) open_events();
}

void Metrics::State::open_events() {
  events.emplace(spec.folder + "/tensorboard", spec.append ? spec.resume_step + 1 : 0);
  std::vector<std::pair<std::string, std::vector<std::string>>> charts;
  for (const CounterRow& row : counter_table)
    if (is_written(row, spec.k)) {
      const std::string name = name_of(row, spec.k);
      charts.push_back({name, {"train/" + name, "val/" + name}});
    }
  charts.push_back({"seconds of a step", {"time/data", "time/compute", "time/comm", "time/other"}});
  events->write_charts("training and validation", charts);
  if (!spec.hyperparameters.empty()) events->write_hyperparameters(spec.hyperparameters);
  if (!spec.configuration.empty())
    events->write_text("configuration", fmt::format("```ini\n{}```\n", valid_utf8(spec.configuration)));
}

void Metrics::State::write_summary() {
  if (spec.folder.empty() || (spec.may_write && !spec.may_write())) return;
  try {
    replace_text_file(spec.folder + "/summary.csv", table.csv());
    summary_broken = false;
  } catch (const Error& e) {
    if (!summary_broken) log::warn("{}. The run continues; it writes the table as soon as it can", e.what());
    summary_broken = true;
  }
}

namespace {

EventFile::Scalars counters_of(const std::string& group, const CounterValues& values, int k) {
  EventFile::Scalars scalars;
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    if (is_written(counter_table[i], k)) scalars.emplace_back(group + name_of(counter_table[i], k), values[i]);
  return scalars;
}

}  // namespace

Metrics::Metrics(const MetricsSpec& spec) : state_(std::make_unique<State>(spec)) {}
Metrics::~Metrics() = default;

void Metrics::train(const StepRecord& record) {
  State& s = *state_;
  const Index steps = record.step - s.last_step;
  s.last_step = record.step;
  log::info("{}", step_text(record, steps, s.spec.epochs));
  s.append(train_line(record, steps, s.spec.ranks, s.spec.k));
  if (!s.events) return;
  const StepTimes times = times_of(record, steps);
  EventFile::Scalars scalars = counters_of("train/", record.counters, s.spec.k);
  scalars.insert(scalars.end(), {{"train/lr", record.rate},
                                 {"train/images_per_sec", times.images_per_second},
                                 {"time/step", times.step},
                                 {"time/data", times.data},
                                 {"time/compute", times.compute},
                                 {"time/comm", times.comm},
                                 {"time/other", times.other}});
  s.events->write(record.step, scalars);
}

void Metrics::validation(const ValidationRecord& record) {
  State& s = *state_;
  s.append(validation_line(record));
  s.table.add(record);
  s.write_summary();
  if (!s.events) return;
  s.events->write(record.step, counters_of("val/", record.counters, record.k));
}

void Metrics::epoch(const EpochRecord& record) {
  State& s = *state_;
  s.append(epoch_line(record, s.last_step));
  if (record.ranks.ranks > 1) log::info("epoch {}: {}", record.epoch, describe(record.ranks));
  s.table.add(record, s.last_step);
  s.write_summary();
  if (!s.events) return;
  EventFile::Scalars scalars;
  for (std::size_t i = 0; i < counter_table.size(); ++i)
    if (counter_table[i].console_width > 0)
      scalars.emplace_back(fmt::format("epoch/{}", counter_table[i].name), record.counters[i]);
  scalars.emplace_back("epoch/seconds", record.seconds);
  scalars.emplace_back("epoch/number", static_cast<double>(record.epoch));
  s.events->write(s.last_step, scalars);
}

void Metrics::tensors(const std::string& group, Index step, const std::vector<TensorSummary>& summaries) {
  State& s = *state_;
  if (s.spec.folder.empty()) return;
  if (!s.monitor) s.open_monitor();
  s.monitor->append(monitor_line(group, step, summaries));
  if (s.events) s.events->write(step, group, summaries);
}

void Metrics::event(const std::string& what, const std::map<std::string, std::string>& texts,
                    const std::map<std::string, EventNumber>& numbers) {
  state_->append(run_line(what, texts, numbers));
  const auto exit = numbers.find("exit");
  if (!state_->events || exit == numbers.end()) return;
  const Index code = std::get<Index>(exit->second);
  if (code != static_cast<Index>(Exit::stopped))
    state_->events->write_end(code == 0 ? EventFile::Result::success : EventFile::Result::failure);
}

void Metrics::progress(const StepProgress& now) {
  State& s = *state_;
  log::progress(progress_text(s.progress, now, s.spec.epochs));
}

bool Metrics::has_epochs() const { return !state_->table.empty(); }
std::string Metrics::table() const { return state_->table.text(); }

}  // namespace convoy
