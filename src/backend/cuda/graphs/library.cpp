// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graphs/library.hpp"

#include <cstdlib>

#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// What follows `"key":` in flat JSON.
std::string value_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find('"' + key + "\":");
  if (at == std::string::npos)
    fail(Exit::usage, "the card's description has no '{}' (it takes what cudnn_frontend::DeviceProperties writes)",
         key);
  std::size_t begin = at + key.size() + 3;
  while (begin < json.size() && json[begin] == ' ') ++begin;
  const bool quoted = begin < json.size() && json[begin] == '"';
  if (quoted) ++begin;
  return json.substr(begin, json.find_first_of(quoted ? "\"" : ",}", begin) - begin);
}

}  // namespace

std::shared_ptr<Operation> Library::find(const ConvolutionGraph& graph, const BuildSpec& spec) {
  const std::pair key(graph, spec);
  const auto kept = operations_.find(key);
  if (kept != operations_.end()) return kept->second;
  return operations_[key] = build(graph, spec);
}

CardDescription describe_card(const std::string& properties) {
  CardDescription card{properties, value_of(properties, "deviceName"), 0};
  card.sm = std::atoi(value_of(properties, "deviceVer").c_str()) / 10;
  if (card.sm < 50)
    fail(Exit::usage, "the card's description has deviceVer '{}' (compute capability times 100)",
         value_of(properties, "deviceVer"));
  return card;
}

}  // namespace convoy::cuda
