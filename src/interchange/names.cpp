// SPDX-License-Identifier: Apache-2.0
#include "interchange/names.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "core/hash.hpp"

namespace convoy {

std::vector<StateEntry> state_dict_of(const Plan& plan) {
  std::vector<StateEntry> entries;
  const ParameterTable& table = plan.table;
  for (std::size_t i = 0; i < plan.graph.nodes.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    for (const ParameterSpec& parameter : plan.graph.nodes[i].parameters) {
      const Parameter* row = table.find(parameter.name);
      require(row != nullptr, "a parameter of the graph isn't in its table");
      entries.push_back({row->name, row->shape, StateEntry::Part::values, row->range, node});
    }
    const auto norm = std::find_if(table.norms.begin(), table.norms.end(),
                                   [&](const NormStatistics& each) { return each.node == node; });
    if (norm == table.norms.end()) continue;
    const auto add = [&](const char* what, const std::vector<Index>& extent, StateEntry::Part part, Range range) {
      entries.push_back({norm->name + what, extent, part, range, node});
    };
    add(".running_mean", {norm->mean.count}, StateEntry::Part::statistics, norm->mean);
    add(".running_var", {norm->variance.count}, StateEntry::Part::statistics, norm->variance);
    add(".num_batches_tracked", {}, StateEntry::Part::batches, {});
  }
  return entries;
}

std::vector<NamedTensor> state_dict_values(const Plan& plan, std::span<const float> values,
                                           std::span<const float> statistics, Index batches) {
  std::vector<NamedTensor> tensors;
  for (const StateEntry& entry : state_dict_of(plan)) {
    const auto copy = [&](std::span<const float> block) {
      const auto part =
          block.subspan(static_cast<std::size_t>(entry.range.begin), static_cast<std::size_t>(entry.range.count));
      return std::vector<float>(part.begin(), part.end());
    };
    switch (entry.part) {
      case StateEntry::Part::values:
        tensors.push_back({entry.name, entry.extent, copy(values)});
        break;
      case StateEntry::Part::statistics:
        tensors.push_back({entry.name, entry.extent, copy(statistics)});
        break;
      case StateEntry::Part::batches:
        tensors.push_back({entry.name, entry.extent, {}, {batches}});
        break;
    }
  }
  return tensors;
}

std::uint64_t digest_of_tensor(const NamedTensor& tensor, std::uint64_t digest) {
  if (tensor.type() == TensorType::i64) return digest;  // counts of batches are no weights
  digest = hash_text(tensor.name, digest);
  digest = hash_bytes(tensor.extent.data(), tensor.extent.size() * sizeof(Index), digest);
  return hash_bytes(tensor.values.data(), tensor.values.size() * sizeof(float), digest);
}

std::uint64_t digest_of_state(const std::vector<NamedTensor>& tensors) {
  std::uint64_t digest = 0;
  for (const NamedTensor& tensor : tensors) digest = digest_of_tensor(tensor, digest);
  return digest;
}

}  // namespace convoy
