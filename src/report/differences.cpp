// SPDX-License-Identifier: Apache-2.0
#include "report/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy {
namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

std::string value_of(const Named& all, const std::string& key) {
  for (const auto& [name, value] : all)
    if (name == key) return value;
  return "-";
}

template <class Value>
void add(std::vector<Difference>& to, const std::vector<RunRecord>& runs, const std::string& name, const Value& value) {
  Difference row{.name = name, .values = {}};
  for (const RunRecord& run : runs) row.values.push_back(value(run));
  const bool same = std::all_of(row.values.begin(), row.values.end(),
                                [&](const std::string& other) { return other == row.values.front(); });
  if (!same) to.push_back(std::move(row));
}

void add_named(std::vector<Difference>& to, const std::vector<RunRecord>& runs, Named RunRecord::*named) {
  std::vector<std::string> keys;
  for (const RunRecord& run : runs)
    for (const auto& [name, value] : run.*named)
      if (std::find(keys.begin(), keys.end(), name) == keys.end()) keys.push_back(name);
  for (const std::string& key : keys)
    add(to, runs, key, [&](const RunRecord& run) { return value_of(run.*named, key); });
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
