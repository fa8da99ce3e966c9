// SPDX-License-Identifier: Apache-2.0
#include "network/models.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <regex>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "network/layers.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

const Family* find_family(const std::vector<Family>& families, const std::string& model) {
  const auto found = std::find_if(families.begin(), families.end(), [&](const Family& f) { return f.has(model); });
  return found == families.end() ? nullptr : &*found;
}

/// As families write names.
std::string plain_name(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// The letters of a name, which its family shares: `resnet50` -> `resnet`.
std::string stem_of(const std::string& name) { return name.substr(0, name.find_first_of("0123456789_")); }

std::string digits_of(const std::string& name) {
  std::string digits;
  std::copy_if(name.begin(), name.end(), std::back_inserter(digits),
               [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return digits;
}

/// A network with another number is another network, which nobody means who has mistyped a letter.
std::vector<std::string> with_digits_of(const std::string& name, std::vector<std::string> names) {
  std::erase_if(names, [digits = digits_of(name)](const std::string& other) { return digits_of(other) != digits; });
  return names;
}

[[noreturn]] void fail_unknown(const std::string& model) {
  const std::vector<std::string> names = model_names();
  if (model.find_first_of("./") != std::string::npos)
    fail(Exit::usage, "unknown model '{}'; if it is a file that describes a network, give it as --model-file {}", model,
         model);
  // Another family's network would be another network.
  const std::string name = plain_name(model), stem = stem_of(name);
  std::vector<std::string> alike = names;
  std::erase_if(alike, [&](const std::string& other) { return stem_of(other) != stem; });
  // Of a family it is the rest that was misspelt.
  std::vector<std::string> rests;
  rests.reserve(alike.size());
  for (const std::string& other : with_digits_of(name, alike)) rests.push_back(other.substr(stem.size()));
  std::string meant =
      alike.empty() ? nearest(name, with_digits_of(name, names)) : nearest(name.substr(stem.size()), rests);
  if (!alike.empty() && !meant.empty()) meant = stem + meant;
  if (!meant.empty()) fail(Exit::usage, "unknown model '{}'; did you mean '{}'?", model, meant);
  if (!alike.empty())
    fail(Exit::usage, "unknown model '{}'; networks of this family are {}", model, fmt::join(alike, ", "));
  fail(Exit::usage, "unknown model '{}'; 'convoy models' lists the networks", model);
}

void check_numbers(const GraphSpec& spec) {
  if (spec.classes < 1 || spec.channels < 1 || spec.image_size < 1)
    fail(Exit::usage, "a network for {} classes, {} channels and images of {} px (all must be positive)", spec.classes,
         spec.channels, spec.image_size);
  if (!(spec.label_smoothing >= 0 && spec.label_smoothing < 1))
    fail(Exit::usage, "label smoothing {} (must be at least 0 and below 1)", spec.label_smoothing);
  if (!(spec.initialiser_std > 0))
    fail(Exit::usage, "initialiser deviation or bound {} (must be above 0)", spec.initialiser_std);
  if (!(spec.leaky_slope >= 0)) fail(Exit::usage, "leaky ReLU slope {} (must not be negative)", spec.leaky_slope);
  const Norms norms = norms_of(spec);
  if (!(norms.momentum >= 0 && norms.momentum <= 1 && norms.epsilon > 0))
    fail(Exit::usage, "batch norm momentum {} and epsilon {} (the momentum must be from 0 to 1, the epsilon above 0)",
         norms.momentum, norms.epsilon);
}

/// An option that the model doesn't have must not be ignored in silence.
[[noreturn]] void refuse(const GraphSpec& spec, const ModelOption& option, const std::string& value) {
  switch (option.form) {
    case ModelOption::Form::word:
      fail(Exit::usage, "{} has no {} (got '{}'); leave it out", spec.model, option.lacks, value);
    case ModelOption::Form::share:
    case ModelOption::Form::factor:
    case ModelOption::Form::counts:
      fail(Exit::usage, "{} has no {} (got {}); leave it out", spec.model, option.lacks, value);
    case ModelOption::Form::flag:
      fail(Exit::usage, "{} has no {}", spec.model, option.lacks);
  }
  fail(Exit::internal, "unknown form of option '{}'", option.name);
}

bool has_option(const Family& family, const std::string& name) {
  return std::any_of(family.options.begin(), family.options.end(),
                     [&](const ModelOption& option) { return option.name == name; });
}

/// Of an option that a network doesn't have: whether the value says so too.
bool says_none(const ModelOption& option, const std::string& value) {
  return option.form == ModelOption::Form::share && std::strtod(value.c_str(), nullptr) == 0;
}

void check_options(const GraphSpec& spec, const Family& family) {
  const std::vector<ModelOption> known = family_options();
  for (const auto& [name, value] : spec.options) {
    if (value.empty()) continue;
    const auto option =
        std::find_if(known.begin(), known.end(), [&name = name](const ModelOption& one) { return one.name == name; });
    if (option == known.end()) fail(Exit::internal, "no network has an option '{}'", name);
    if (!has_option(family, name) && !says_none(*option, value) && !option->lacks.empty()) refuse(spec, *option, value);
  }
}

}  // namespace

std::string GraphSpec::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::string() : found->second;
}

std::optional<NamedNetwork> find_network(const std::string& name, const std::string& depth) {
  const std::vector<Family> families = model_families();
  const auto find = [&](const std::string& plain) -> std::optional<NamedNetwork> {
    if (find_family(families, plain) != nullptr) return NamedNetwork{plain};
    for (const Family& family : families) {
      auto meant = family.other_name ? family.other_name(plain) : std::nullopt;
      if (!meant && depth.empty() && family.name_with_width) meant = family.name_with_width(plain);
      if (meant && find_family(families, meant->model) != nullptr) return meant;
    }
    return std::nullopt;
  };
  const std::string plain = plain_name(name);
  if (depth.empty()) {
    if (auto found = find(plain)) return found;
    static const std::regex apart("([a-z])_([0-9])");  // `resnet_50`, `vgg-16`
    return find(std::regex_replace(plain, apart, "$1$2"));
  }
  const bool ends_in_digit = !plain.empty() && std::isdigit(static_cast<unsigned char>(plain.back())) != 0;
  const auto joined = ends_in_digit ? std::nullopt : find(plain + depth);
  return joined ? joined : find(plain + '_' + depth);
}

Graph build_graph(const GraphSpec& spec) {
  check_numbers(spec);
  if (!spec.layers.empty()) return build_layers(spec);
  const std::vector<Family> families = model_families();
  const Family* family = find_family(families, spec.model);
  if (family == nullptr) fail_unknown(spec.model);
  check_options(spec, *family);
  return family->build(spec);
}

std::vector<std::string> idle_options(const GraphSpec& spec) {
  const std::vector<Family> families = model_families();
  const Family* family = spec.layers.empty() ? find_family(families, spec.model) : nullptr;
  std::vector<std::string> names;
  if (family == nullptr) return names;
  for (const ModelOption& option : family_options())
    if (const std::string value = spec.option(option.name);
        !value.empty() && !has_option(*family, option.name) && says_none(option, value))
      names.push_back(option.name);
  return names;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Family& family : model_families()) names.insert(names.end(), family.names.begin(), family.names.end());
  return names;
}

double published_top1(const std::string& model) {
  for (const Family& family : model_families())
    if (const auto found = family.published.find(model); found != family.published.end()) return found->second;
  return 0;
}

std::string model_help() {
  std::vector<std::string> plain, lines;
  for (const Family& family : model_families()) {
    if (family.help.empty()) plain.insert(plain.end(), family.names.begin(), family.names.end());
    lines.insert(lines.end(), family.help.begin(), family.help.end());
  }
  return fmt::format("{}\n{}", fmt::join(plain, ", "), fmt::join(lines, "\n"));
}

std::vector<ModelOption> family_options() {
  std::vector<ModelOption> all;
  for (const Family& family : model_families())
    for (const ModelOption& option : family.options)
      if (std::none_of(all.begin(), all.end(), [&](const ModelOption& other) { return other.name == option.name; }))
        all.push_back(option);
  return all;
}

Norms usual_norms(const std::string& model) {
  const std::vector<Family> families = model_families();
  const Family* family = find_family(families, model);
  return family == nullptr || !family->norms ? Norms{} : family->norms(model);
}

bool takes_centred_input(const std::string& model) {
  const std::vector<Family> families = model_families();
  return std::any_of(families.begin(), families.end(), [&](const Family& family) {
    const auto& names = family.centred_input;
    return std::find(names.begin(), names.end(), model) != names.end();
  });
}

Norms norms_of(const GraphSpec& spec) {
  const Norms usual = spec.layers.empty() ? usual_norms(spec.model) : Norms{};  // a file's name is free
  return {.epsilon = spec.norm_epsilon.value_or(usual.epsilon),
          .momentum = spec.norm_momentum.value_or(usual.momentum)};
}

GraphSpec with_usual_input(GraphSpec model, Index classes, Index channels, Index image_size) {
  const std::vector<Family> families = model_families();
  const Family* family = model.layers.empty() ? find_family(families, model.model) : nullptr;  // a file's name is free
  const UsualInput usual = family == nullptr ? cifar_input : family->usual_input(model);
  model.classes = classes > 0 ? classes : usual.classes;
  model.channels = channels > 0 ? channels : usual.channels;
  model.image_size = image_size > 0 ? image_size : usual.size;
  return model;
}

}  // namespace convoy
