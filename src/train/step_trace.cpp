// SPDX-License-Identifier: Apache-2.0
#include "train/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/json.hpp"
#include "core/log.hpp"
#include "core/trace.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

/// A line of the file: what a row or a rank is called.
std::string named(const char* kind, int rank, int row, const std::string& name) {
  return Json::object({{"name", kind},
                       {"ph", "M"},
                       {"ts", 0},
                       {"pid", rank},
                       {"tid", row},
                       {"args", Json::object({{"name", name}})}})
      .text(-1, Json::Order::as_written);
}

/// The events of this rank, a line each, in the format that Chrome calls trace events: complete events, microseconds.
std::string events_of(int rank, const std::string& host, Instant zero, const std::vector<TraceEvent>& events) {
  std::string text = named("process_name", rank, 0, fmt::format("rank {} on {}", rank, host));
  std::set<int> rows;
  for (const TraceEvent& event : events) rows.insert(event.row);
  for (const int row : rows) text += ",\n" + named("thread_name", rank, row, trace_row::name_of(row));
  for (const TraceEvent& event : events) {
    std::string facts;
    if (event.number >= 0) facts = fmt::format(R"("step":{})", event.number);
    if (event.bytes >= 0) facts += fmt::format(R"({}"bytes":{})", facts.empty() ? "" : ",", event.bytes);
    text += fmt::format(R"(,{}{{"name":{},"ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{{}}}}})", '\n',
                        Json(event.name).text(-1, Json::Order::as_written), 1e6 * seconds_between(zero, event.begin),
                        1e6 * seconds_between(event.begin, event.end), rank, event.row, facts);
  }
  return text;
}

}  // namespace

bool StepTrace::is_wanted() const { return job_.config.output.trace.last > 0 && job_.trial == nullptr; }

void StepTrace::start(const LoopState& state) {
  const StepSpan& wanted = job_.config.output.trace;
  const Index next = state.position.step + 1;
  if (!is_wanted() || first_step_ > 0 || next < wanted.first || next > wanted.last || state.ends()) return;
  first_step_ = next;
  // Hosts have clocks of their own: time 0 is when the ranks leave this place together.
  job_.communicator.barrier("start of the trace");
  trace().begin();
}

void StepTrace::step_done(LoopState& state) {
  if (first_step_ > 0 && trace().is_on() && (state.position.step >= job_.config.output.trace.last || state.ends()))
    write(state.position.step);
  start(state);
}

void StepTrace::end() const {
  const StepSpan& wanted = job_.config.output.trace;
  if (is_wanted() && first_step_ == 0 && job_.communicator.rank() == 0)
    log::warn("no step of --trace-steps {}:{} was made, so there is no trace; the run is at step {}", wanted.first,
              wanted.last, job_.state.position.step);
}

void StepTrace::write(Index last_step) {
  const auto [zero, events] = trace().end();
  const int rank = job_.communicator.rank();
  const std::vector<std::string> all =
      job_.communicator.gather(events_of(rank, job_.communicator.host(), zero, events), "events of the trace");
  if (rank != 0) return;
  const std::string path = job_.config.output.folder + "/trace.json";
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const std::string& each : all) text += each + (&each == &all.back() ? "\n" : ",\n");
  try {
    job_.attempt.fence.replace(path, text + "]}\n");
    log::info("steps {} to {} are in '{}', for ui.perfetto.dev or chrome://tracing", first_step_, last_step, path);
  } catch (const Error& e) {  // the run matters more
    log::warn("the trace of steps {} to {} is lost: {}", first_step_, last_step, e.what());
  }
}

}  // namespace convoy
