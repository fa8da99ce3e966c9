// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan/expectation.hpp"

#include <fmt/format.h>

#include <fstream>

#include "backend/cuda/lowering/table.hpp"

namespace convoy::cuda {
namespace {

std::string summary_of(const Recipe& recipe) {
  const Summary s = summarise(recipe);
  return fmt::format(
      "convolutions {} statistics {} prologues {} joins {} weight prologues {} data borders {} data joins {}, graphs "
      "{} "
      "kernels {}, MB an image {:.2f} hidden {:.2f}",
      s.convolutions, s.statistics, s.prologues, s.joins, s.weight_prologues, s.data_borders, s.data_joins, s.graphs,
      s.kernels, s.bytes_per_image / 1e6, s.hidden_per_image / 1e6);
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

void Expectation::add(const std::string& program, const Recipe& recipe, Mode mode) {
  programs[program] = summary_of(recipe);
  for (const Step& step : recipe.steps)
    if (step.operation && mode == Mode::train)
      forms[describe(step.form)] =
          fmt::format("{} workspace {}", step.operation->engine(), step.operation->workspace_bytes());
}

std::string to_text(const Expectation& expectation) {
  std::string text = "library: " + expectation.library + '\n';
  for (const auto& [key, value] : expectation.programs) text += "program: " + key + ": " + value + '\n';
  for (const auto& [key, value] : expectation.forms) text += "form: " + key + ": " + value + '\n';
  return text;
}

Expectation read_expectation(const std::string& path) {
  Expectation expectation;
  std::ifstream file(path);
  const std::string border = ": ";
  for (std::string line; std::getline(file, line);) {
    const std::size_t kind = line.find(border), key = line.find(border, kind + border.size());
    const std::string name = line.substr(0, kind), rest = line.substr(kind + border.size());
    if (name == "library") {
      expectation.library = rest;
    } else if (key != std::string::npos) {
      const std::size_t length = key - kind - border.size();
      (name == "program" ? expectation.programs : expectation.forms)[rest.substr(0, length)] =
          rest.substr(length + border.size());
    }
  }
  return expectation;
}

std::string differences(const Expectation& expected, const Expectation& found) {
  std::string text;
  compare(expected.programs, found.programs, true, text);
  compare(expected.forms, found.forms, expected.library == found.library, text);
  return text;
}

}  // namespace convoy::cuda
