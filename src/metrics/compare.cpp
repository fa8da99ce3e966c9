// SPDX-License-Identifier: Apache-2.0
#include "metrics/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/counters.hpp"
#include "core/json.hpp"

namespace convoy {
namespace {

using Key = std::pair<std::string, Index>;

/// `split` and step; a step of 0 or below: no record of training.
Key key_of(const Json& record) {
  const Json *split = record.find("split"), *step = record.find("step");
  if (split == nullptr || step == nullptr || !split->is_text() || !step->is_integer() || *split == "run") return {};
  return {split->as<std::string>(), step->as<Index>()};
}

/// Means over the images of an interval.
bool is_mean(const std::string& name) {
  return name.starts_with("top") || std::any_of(counter_table.begin(), counter_table.end(),
                                                [&](const CounterRow& row) { return name == row.name; });
}

bool is_compared(const std::string& name) {
  return name == "images" || name == "images_seen" || name == "lr" || is_mean(name);
}

/// null is a number that was not finite.
double number(const Json& value) { return value.is_number() ? value.as<double>() : std::nan(""); }

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::vector<NumberPair> differing_numbers(const Json& a, const Json& b) {
  const bool other_interval = a.at("split") == "train" && a.value("images", 0.0) != b.value("images", 0.0);
  std::vector<NumberPair> numbers;
  for (std::size_t i = 0; i < a.names().size(); ++i) {
    const std::string& name = a.names()[i];
    const Json* of_b = b.find(name);
    if (of_b == nullptr || !is_compared(name)) continue;
    if (other_interval && (name == "images" || is_mean(name))) continue;
    const NumberPair pair{name, number(a.items()[i]), number(*of_b)};
    if (!same(pair.a, pair.b)) numbers.push_back(pair);
  }
  return numbers;
}

template <class Take>
void read_records(std::istream& log, const Take& take) {
  for (std::string line; std::getline(log, line);) {
    Json record = Json::parse_or_null(line);
    if (const Key key = key_of(record); key.second > 0) take(key, std::move(record));
  }
}

}  // namespace

LogComparison compare_logs(std::istream& a, std::istream& b) {
  LogComparison found;
  std::map<Key, Json> others;
  read_records(b, [&](const Key& key, Json record) {
    found.last_b = std::max(found.last_b, key.second);
    others[key] = std::move(record);
  });
  std::vector<Index> trained;  // steps of A
  read_records(a, [&](const Key& key, const Json& record) {
    found.last_a = std::max(found.last_a, key.second);
    if (key.first == "train") trained.push_back(key.second);
    const auto other = others.find(key);
    if (other == others.end()) return;
    ++found.records;
    if (found.first) return;
    auto numbers = differing_numbers(record, other->second);
    if (numbers.empty()) {
      found.equal_to = key.second;
    } else {
      found.first = {key.first, key.second, std::move(numbers)};
    }
  });
  const Index both = std::min(found.last_a, found.last_b);
  for (const auto& [key, record] : others) found.train_b += key.first == "train" && key.second <= both ? 1 : 0;
  for (const Index step : trained) {
    if (step > both) continue;
    ++found.train_a;
    found.train_common += others.contains({"train", step}) ? 1 : 0;
  }
  return found;
}

}  // namespace convoy
