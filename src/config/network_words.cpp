// SPDX-License-Identifier: Apache-2.0
#include "config/network_words.hpp"

#include <algorithm>
#include <optional>

#include "core/errors.hpp"
#include "network/models.hpp"

namespace convoy {
namespace {

using Last = std::map<std::string, Assignment>;

bool is_of_line(const Assignment& one) { return one.origin.starts_with("-"); }

/// The name with that depth in place of its own: `vgg16_bn` with 11 -> `vgg11_bn`. Nothing: its number is no depth
/// (`inception_v3`), or there is no such network.
std::optional<NamedNetwork> with_other_depth(std::string name, const std::string& depth) {
  constexpr const char* digits = "0123456789";
  const auto begin = name.find_first_of(digits);
  if (begin == std::string::npos || !find_network(name)) return std::nullopt;
  if (!find_network(name.substr(0, begin), depth)) return std::nullopt;
  const auto end = name.find_first_not_of(digits, begin);
  return find_network(name.replace(begin, end == std::string::npos ? end : end - begin, depth));
}

bool gives(const std::vector<Assignment>& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(), [&](const Assignment& one) { return one.name == name; });
}

}  // namespace

void leave_out_depth(std::vector<Assignment>& of_file, const std::vector<Assignment>& of_line) {
  const bool has_depth = std::any_of(of_line.begin(), of_line.end(), [](const Assignment& one) {
    return one.name == "model" && find_network(one.value);
  });
  if (has_depth) std::erase_if(of_file, [](const Assignment& one) { return one.name == "num-layers"; });
}

void leave_out_depth_alone(std::vector<Assignment>& of_file) {
  if (!gives(of_file, "model")) std::erase_if(of_file, [](const Assignment& one) { return one.name == "num-layers"; });
}

void translate_network(Last& last, std::set<std::string>& names) {
  const auto model = last.find("model");
  const auto depth = last.find("num-layers");
  const auto layers = last.find("layers");
  if (layers != last.end() && depth != last.end())
    fail(Exit::usage, "{} has no effect: {} gives the network with all its layers; drop it", depth->second.origin,
         layers->second.origin);
  if (layers != last.end() || model == last.end()) return;  // a file's name is free
  const std::string& name = model->second.value;
  auto found = find_network(name, depth == last.end() ? std::string() : depth->second.value);
  if (!found && depth != last.end() && is_of_line(depth->second) && !is_of_line(model->second))
    found = with_other_depth(name, depth->second.value);
  if (!found) return;
  model->second.value = found->model;
  if (depth != last.end()) last.erase(depth);
  for (const auto& [option, value] : found->options) {
    const auto said = last.find(option);
    if (said != last.end() && said->second.value != value && (is_of_line(said->second) || !is_of_line(model->second)))
      fail(Exit::usage, "{} is a network with {} {}, and {} says another; drop one of them", model->second.origin,
           option, value, said->second.origin);
    names.insert(option);
    last[option] = {option, value, model->second.origin};
  }
}

}  // namespace convoy
