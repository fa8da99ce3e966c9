// SPDX-License-Identifier: Apache-2.0
// What the plan check expects of a card, as a text file: the library's version, one line a program with its summary,
// and one line a graph with its engine and workspace. Engines and workspaces hold for one version of cuDNN only.
#pragma once
#include <map>
#include <string>

#include "backend/cuda/lowering/execution_plan.hpp"

namespace convoy::cuda {

struct Expectation {
  std::string compiled_for;
  std::map<std::string, std::string> programs;  ///< `imagenet_resnet50 fp16 n256 train` -> counts and bytes
  std::map<std::string, std::string> graphs;    ///< graph -> engine and workspace

  /// Adds a program's summary.
  void add(const std::string& program, const ExecutionPlan& execution);
  /// Adds the graphs of a program's steps.
  void add_graphs(const ExecutionPlan& execution);
};

std::string to_text(const Expectation& expectation);
/// Empty where the file is missing.
Expectation read_expectation(const std::string& path);
/// Line by line: what is missing, new or different. Empty: alike. Engines and workspaces are compared where the
/// libraries are of one version.
std::string differences(const Expectation& expected, const Expectation& found);

}  // namespace convoy::cuda
