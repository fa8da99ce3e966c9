// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file.hpp"
#include "core/errors.hpp"
#include "io/hdf5.hpp"

namespace convoy {
namespace {

/// Datasets below a group, in the order of the network: a file begins with the gradients that become final first, which
/// are those of the last layer.
std::vector<std::string> tensors_below(const Hdf5File& file, const std::string& group) {
  std::vector<std::string> names;
  if (!file.exists(group)) return names;
  for (const std::string& name : file.names(group)) names.push_back(group + "/" + name);
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return file.offset(a) > file.offset(b); });
  return names;
}

std::vector<std::string> tensors_of(const Hdf5File& file) {
  std::vector<std::string> groups{"/parameters", "/statistics"};
  if (file.exists("/optimiser"))
    for (const std::string& slot : file.names("/optimiser")) groups.push_back("/optimiser/" + slot);
  groups.insert(groups.end(), {"/ema/parameters", "/ema/statistics", "/outer/anchor", "/outer/momentum", "/basis"});
  std::vector<std::string> names;
  for (const std::string& group : groups) {
    const std::vector<std::string> more = tensors_below(file, group);
    names.insert(names.end(), more.begin(), more.end());
  }
  if (file.exists("/state")) names.emplace_back("/state");
  return names;
}

std::vector<float> values_of(const Hdf5File& file, const std::string& name) {
  std::vector<float> values(static_cast<std::size_t>(file.shape(name).count()));
  file.read(name, Element::f32, std::as_writable_bytes(std::span(values)));
  return values;
}

/// Nothing: the same bits.
std::optional<TensorDifference> difference_of(const std::string& name, const Hdf5File& a, const Hdf5File& b) {
  TensorDifference found{.name = name, .problem = {}};
  for (const auto& [file, letter] : {std::pair{&a, 'A'}, std::pair{&b, 'B'}})
    if (!file->exists(name)) found.problem = fmt::format("not in {}", letter);
  if (!found.problem.empty()) return found;
  const DatasetShape in_a = a.shape(name), in_b = b.shape(name);
  if (!(in_a == in_b)) {
    found.problem = fmt::format("{} in A, {} in B", in_a.text(), in_b.text());
    return found;
  }
  const std::vector<float> x = values_of(a, name), y = values_of(b, name);
  if (std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0) return std::nullopt;
  double squares = 0, of_a = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(x[i]) == std::bit_cast<std::uint32_t>(y[i])) continue;  // infinite ones, too
    const double distance = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    squares += distance * distance;
    if (std::isnan(distance) || distance > found.largest) found.largest = distance;
  }
  for (const float value : x) of_a += static_cast<double>(value) * static_cast<double>(value);
  found.relative = squares == 0 ? 0 : std::sqrt(squares / of_a);
  return found;
}

struct MainFile {
  const FileMeta& file;
  const std::string& path;
  /// Paths, by replica. Throws Error(data) if a shard is damaged or of another save.
  std::map<int, std::string> shards() const {
    std::map<int, std::string> paths;
    for (const ShardRecord& shard : file.shards) {
      if (const std::string damage = find_damage(path, shard); !damage.empty()) fail(Exit::data, "{}", damage);
      paths[shard.replica] = shard_path(path, shard);
    }
    return paths;
  }
};

/// Compares the residuals of replicas present in both; a different number of replicas is reported separately.
void compare_residuals(const MainFile& a, const MainFile& b, CheckpointComparison& found) {
  const auto of_b = b.shards();
  for (const auto& [replica, path] : a.shards()) {
    const auto other = of_b.find(replica);
    if (other == of_b.end()) continue;
    const Hdf5File in_a(path, Hdf5File::Access::read), in_b(other->second, Hdf5File::Access::read);
    for (const std::string& name : tensors_below(in_a, "/residual")) {
      ++found.tensors;
      auto difference = difference_of(name, in_a, in_b);
      if (!difference) continue;
      difference->name = fmt::format("{} of replica {}", name, replica);
      found.differing.push_back(std::move(*difference));
    }
  }
}

std::map<Index, std::string> by_steps(const std::string& run_folder) {
  std::map<Index, std::string> found;
  const Lineage line(run_folder);
  for (const std::string& folder : checkpoint_folders(run_folder)) {
    for (const std::string& path : list_checkpoints(folder, {}, line)) {
      try {
        found.emplace(peek(path).step, path);
      } catch (const Error&) {  // its run goes on, and has removed it meanwhile
      }
    }
  }
  return found;
}

}  // namespace

CheckpointComparison compare_checkpoints(const std::string& a, const std::string& b) {
  CheckpointComparison found;
  const FileMeta main_a = read_main_meta(a), main_b = read_main_meta(b);
  found.a = main_a.meta;
  found.b = main_b.meta;
  const Hdf5File in_a(a, Hdf5File::Access::read), in_b(b, Hdf5File::Access::read);
  std::vector<std::string> names = tensors_of(in_a);
  for (const std::string& name : tensors_of(in_b))
    if (!in_a.exists(name)) names.push_back(name);
  found.tensors = static_cast<Index>(names.size());
  for (const std::string& name : names)
    if (auto difference = difference_of(name, in_a, in_b)) found.differing.push_back(std::move(*difference));
  if (found.a.compression.is_on() && found.b.compression.is_on()) compare_residuals({main_a, a}, {main_b, b}, found);
  return found;
}

std::vector<CheckpointPair> common_checkpoints(const std::string& a, const std::string& b) {
  const auto of_a = by_steps(a), of_b = by_steps(b);
  std::vector<CheckpointPair> pairs;
  for (const auto& [step, path] : of_a)
    if (const auto other = of_b.find(step); other != of_b.end()) pairs.push_back({step, path, other->second});
  return pairs;
}

FirstDifference first_difference(const std::vector<CheckpointPair>& pairs) {
  require(!pairs.empty(), "checkpoints are compared in pairs");
  FirstDifference first;
  for (const CheckpointPair& pair : pairs) {
    CheckpointComparison found;
    try {
      found = compare_checkpoints(pair.a, pair.b);
    } catch (const Error& e) {
      first.left_out.push_back(fmt::format("step {}: {}", pair.step, e.what()));
      continue;
    }
    // A run that goes on replaces its last checkpoint.
    if (found.a.position.step != pair.step || found.b.position.step != pair.step) {
      first.left_out.push_back(fmt::format("step {}: its checkpoint was replaced meanwhile", pair.step));
      continue;
    }
    first.pair = pair;
    first.found = std::move(found);
    if (!first.found.differing.empty()) return first;
    ++first.equal;
    first.equal_to_step = pair.step;
  }
  if (first.equal == 0) fail(Exit::data, "no checkpoint of a common step can be compared ({})", first.left_out.front());
  return first;
}

}  // namespace convoy
