// SPDX-License-Identifier: Apache-2.0
#include "report/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy {
namespace {

template <class Value>
void add(std::vector<Difference>& to, const std::vector<RunRecord>& runs, const std::string& name, const Value& value) {
  Difference row{.name = name, .values = {}};
  for (const RunRecord& run : runs) row.values.push_back(value(run));
  const bool same = std::all_of(row.values.begin(), row.values.end(),
                                [&](const std::string& other) { return other == row.values.front(); });
  if (!same) to.push_back(std::move(row));
}

void add_named(std::vector<Difference>& to, const std::vector<RunRecord>& runs, RunOptions RunRecord::*named) {
  std::vector<const RunOptions*> all;
  all.reserve(runs.size());
  for (const RunRecord& run : runs) all.push_back(&(run.*named));
  for (const std::string& name : differing_names(all))
    add(to, runs, name, [&](const RunRecord& run) { return value_of(run.*named, name); });
}

}  // namespace

std::vector<Difference> compare_options(const std::vector<RunRecord>& runs) {
  std::vector<Difference> found;
  add_named(found, runs, &RunRecord::options);
  return found;
}

std::vector<Difference> compare_environment(const std::vector<RunRecord>& runs) {
  std::vector<Difference> found;
  add(found, runs, "ranks", [](const RunRecord& run) { return fmt::format("{}", run.ranks); });
  add(found, runs, "replicas in use", [](const RunRecord& run) { return fmt::format("{}", run.replicas); });
  add(found, runs, "images per step", [](const RunRecord& run) { return fmt::format("{}", run.global_batch); });
  add(found, runs, "device of rank 0", [](const RunRecord& run) { return run.device; });
  add(found, runs, "build", [](const RunRecord& run) { return run.build; });
  add_named(found, runs, &RunRecord::environment);
  return found;
}

}  // namespace convoy
