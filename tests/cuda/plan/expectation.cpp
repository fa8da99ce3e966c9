// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan/expectation.hpp"

#include <fmt/format.h>

#include <fstream>

#include "backend/cuda/lowering/summary.hpp"

namespace convoy::cuda {
namespace {

std::string summary_of(const ExecutionPlan& execution) {
  const Summary s = summarise(execution);
  return fmt::format(
      "convolutions {} statistics {} prologues {} joins {} weight prologues {} data borders {} data joins {}, graphs "
      "{} "
      "beside {} kernels {}, MB an image {:.2f} hidden {:.2f}",
      s.convolutions, s.statistics, s.prologues, s.joins, s.weight_prologues, s.data_fusions, s.data_joins, s.graphs,
      s.beside, s.kernels, s.bytes_per_image / 1e6, s.hidden_per_image / 1e6);
}

void compare(const std::map<std::string, std::string>& expected, const std::map<std::string, std::string>& found,
             bool values, std::string& text) {
  for (const auto& [key, value] : expected) {
    const auto other = found.find(key);
    if (other == found.end()) {
      text += "missing: " + key + '\n';
    } else if (values && other->second != value) {
      text += key + "\n  expected " + value + "\n  found    " + other->second + '\n';
    }
  }
  for (const auto& entry : found)
    if (expected.count(entry.first) == 0) text += "new: " + entry.first + '\n';
}

}  // namespace

void Expectation::add(const std::string& program, const ExecutionPlan& execution) {
  programs[program] = summary_of(execution);
}

void Expectation::add_graphs(const ExecutionPlan& execution) {
  for (const Step& step : execution.steps)
    if (step.operation)
      graphs[describe(step.graph)] =
          fmt::format("{} workspace {}", step.operation->engine(), step.operation->workspace_bytes());
}

std::string to_text(const Expectation& expectation) {
  std::string text = "library: " + expectation.compiled_for + '\n';
  for (const auto& [key, value] : expectation.programs) text += "program: " + key + ": " + value + '\n';
  for (const auto& [key, value] : expectation.graphs) text += "form: " + key + ": " + value + '\n';
  return text;
}

Expectation read_expectation(const std::string& path) {
  Expectation expectation;
  std::ifstream file(path);
  const std::string separator = ": ";
  for (std::string line; std::getline(file, line);) {
    const std::size_t kind = line.find(separator), key = line.find(separator, kind + separator.size());
    const std::string name = line.substr(0, kind), rest = line.substr(kind + separator.size());
    if (name == "library") {
      expectation.compiled_for = rest;
    } else if (key != std::string::npos) {
      const std::size_t length = key - kind - separator.size();
      (name == "program" ? expectation.programs : expectation.graphs)[rest.substr(0, length)] =
          rest.substr(length + separator.size());
    }
  }
  return expectation;
}

std::string differences(const Expectation& expected, const Expectation& found) {
  std::string text;
  compare(expected.programs, found.programs, true, text);
  compare(expected.graphs, found.graphs, expected.compiled_for == found.compiled_for, text);
  return text;
}

}  // namespace convoy::cuda
