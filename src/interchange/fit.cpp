// SPDX-License-Identifier: Apache-2.0
#include "interchange/fit.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/errors.hpp"
#include "core/shape_text.hpp"
#include "core/text.hpp"

namespace convoy {
namespace {

constexpr std::size_t shown = 3;

// What torchvision's AveragedModel counts beside the weights.
constexpr std::string_view averaged_count = "n_averaged";

/// Auxiliary classifiers of torchvision's GoogLeNet and Inception, which only training with them uses.
bool is_auxiliary(std::string_view name) {
  constexpr std::array<std::string_view, 3> prefixes{"aux1.", "aux2.", "AuxLogits."};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Length of what a training program puts before all names: `module.` of DataParallel and AveragedModel, `_orig_mod.`
/// of torch.compile, `model.` or another attribute in which a Lightning module holds the network. Words with which
/// names of the network begin stay.
std::size_t length_of_wrappers(const std::vector<const StoredValues*>& tensors,
                               const std::vector<StateEntry>& entries) {
  if (tensors.empty()) return 0;
  const std::string_view first = tensors.front()->name;
  std::size_t length = 0;
  for (std::size_t dot; (dot = first.find('.', length)) != std::string_view::npos; length = dot + 1) {
    const std::string_view all = first.substr(0, dot + 1), word = all.substr(length);
    const auto is_own = [&](const StateEntry& entry) { return entry.name.starts_with(word); };
    const auto has_it = [&](const StoredValues* tensor) { return tensor->name.starts_with(all); };
    if (std::any_of(entries.begin(), entries.end(), is_own) || !std::all_of(tensors.begin(), tensors.end(), has_it))
      break;
  }
  return length;
}

/// Tensors by their names in the network.
std::map<std::string, const StoredValues*, std::less<>> by_plain_name(const TensorFile& file,
                                                                      const std::vector<StateEntry>& entries) {
  std::vector<const StoredValues*> tensors;
  for (const StoredValues& tensor : file.tensors())
    if (tensor.name != averaged_count) tensors.push_back(&tensor);
  const std::size_t length = length_of_wrappers(tensors, entries);
  std::map<std::string, const StoredValues*, std::less<>> names;
  for (const StoredValues* tensor : tensors) names.emplace(tensor->name.substr(length), tensor);
  return names;
}

/// `conv_stem.weight` for `features.0.0.weight`; the name itself where the map has none for its module.
std::string renamed(const std::string& name, const NameMap& modules) {
  const std::size_t end = name.rfind('.');
  const auto found = modules.find(name.substr(0, end));
  return found == modules.end() ? name : found->second + name.substr(end);
}

/// The same without sides of 1 at the end: a linear layer written as a 1x1 convolution.
std::vector<Index> without_ones(std::vector<Index> extent) {
  while (!extent.empty() && extent.back() == 1) extent.pop_back();
  return extent;
}

/// A single class is a side of 1, too.
bool is_other_number_of_classes(const StateEntry& entry, const StoredValues& tensor,
                                const std::vector<std::string>& heads) {
  if (!begins_with_any(entry.name, heads) || entry.extent.empty() || tensor.extent.empty()) return false;
  const auto of_one_class = [](const std::vector<Index>& extent) {
    return without_ones({extent.begin() + 1, extent.end()});
  };
  return of_one_class(entry.extent) == of_one_class(tensor.extent);
}

/// A body without a part of the network misses all entries of it: these move `to`.
template <class IsOfPart>
void separate(StateFit& fit, std::vector<StateEntry>& to, const IsOfPart& is_of_part) {
  const auto has_part = [&](const FilledEntry& each) { return is_of_part(each.entry); };
  for (const auto* found : {&fit.filled, &fit.other_head, &fit.misshapen})
    if (std::any_of(found->begin(), found->end(), has_part)) return;
  const auto at = std::stable_partition(fit.missing.begin(), fit.missing.end(),
                                        [&](const StateEntry& entry) { return !is_of_part(entry); });
  to.assign(at, fit.missing.end());
  fit.missing.erase(at, fit.missing.end());
}

template <class Item, class Text>
void list(std::vector<std::string>& parts, const char* what, const std::vector<Item>& items, const Text& text) {
  if (items.empty()) return;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(items.size(), shown); ++i) words.push_back(text(items[i]));
  const std::string more = items.size() > shown ? fmt::format(" and {} more", items.size() - shown) : "";
  parts.push_back(fmt::format("{} {}: {}{}", counted(items.size(), "tensor"), what, fmt::join(words, ", "), more));
}

std::string differences(const StateFit& fit) {
  std::vector<std::string> parts;
  const auto both = [](const FilledEntry& each) {
    return fmt::format("'{}' is {} in the file and {} in the network", each.entry.name, shape_text(each.from->extent),
                       shape_text(each.entry.extent));
  };
  list(parts, "missing", fit.missing,
       [](const StateEntry& entry) { return fmt::format("'{}' {}", entry.name, shape_text(entry.extent)); });
  list(parts, "missing in the last layer", fit.missing_head,
       [](const StateEntry& entry) { return fmt::format("'{}' {}", entry.name, shape_text(entry.extent)); });
  list(parts, "missing in the auxiliary classifiers", fit.missing_auxiliary,
       [](const StateEntry& entry) { return fmt::format("'{}' {}", entry.name, shape_text(entry.extent)); });
  list(parts, "unknown to the network", fit.unexpected,
       [](const StoredValues* tensor) { return fmt::format("'{}' {}", tensor->name, shape_text(tensor->extent)); });
  list(parts, "of another shape", fit.misshapen, both);
  list(parts, "of another number of classes", fit.other_head, both);
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// The models that the program names, as they are and with each word of each option that they have.
std::vector<GraphSpec> candidates() {
  std::vector<GraphSpec> plain, chosen;
  for (const std::string& name : model_names()) {
    plain.push_back({.model = name});
    for (const ModelOption& option : family_options())
      for (const std::string& word : option.words) chosen.push_back({.model = name, .options = {{option.name, word}}});
  }
  plain.insert(plain.end(), chosen.begin(), chosen.end());
  return plain;
}

/// Classes of the file where all its tensors are the network's; 0: they aren't.
Index fitting_classes(const GraphSpec& spec, const TensorFile& file) try {
  const Plan plan = make_plan(build_graph(spec), {});
  return classes_of(fit_state(plan, file), plan);
} catch (const Error&) {  // the model doesn't have the option
  return 0;
}

/// Channels of the images that the file's network takes, if it differs from the plan's in that alone; else 0.
Index other_channels(const StateFit& fit, const Plan& plan) {
  if (!fit.missing.empty() || !fit.unexpected.empty()) return 0;
  Index channels = 0;
  for (const auto& [entry, from] : fit.misshapen) {
    const Node& node = plan.graph.nodes.at(static_cast<std::size_t>(entry.node));
    const auto* const convolution = as<Convolution>(node);
    if (convolution == nullptr || node.inputs != std::vector<NodeId>{0} || from->extent.size() != entry.extent.size())
      return 0;
    std::vector<Index> like = entry.extent;
    like.at(1) = from->extent[1];
    const Index theirs = from->extent[1] * convolution->groups;
    if (like != from->extent || (channels != 0 && channels != theirs)) return 0;
    channels = theirs;
  }
  return channels;
}

}  // namespace

std::string model_words(const GraphSpec& spec) {
  if (!spec.layers.empty()) return fmt::format("--model-file with the file that describes {}", spec.model);
  std::string text = "--model " + spec.model;
  for (const auto& [name, value] : spec.options) text += fmt::format(" --{} {}", name, value);
  return text;
}

std::vector<std::string> head_prefixes(const Graph& graph) {
  std::vector<std::string> prefixes;
  for (const Node* layer : class_layers(graph)) prefixes.push_back((layer == nullptr ? "" : layer->name) + ".");
  return prefixes;
}

bool begins_with_any(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto& prefix) { return name.starts_with(prefix); });
}

StateFit fit_state(const Plan& plan, const TensorFile& file) {
  StateFit fit;
  const std::vector<StateEntry> entries = state_dict_of(plan);
  const auto tensors = by_plain_name(file, entries);
  const std::vector<std::string> heads = head_prefixes(plan.graph);
  const std::vector<bool> of_logits = nodes_of_logits(plan.graph);
  const NameMap timm = timm_modules(plan.graph);
  std::set<std::string, std::less<>> used;
  for (const StateEntry& entry : entries) {
    auto found = tensors.find(entry.name);
    if (found == tensors.end()) {
      found = tensors.find(renamed(entry.name, timm));
      if (found != tensors.end()) fit.origin = Library::timm;
    }
    if (found == tensors.end()) {
      if (entry.part != StateEntry::Part::batches) fit.missing.push_back(entry);  // files of before 2018 have none
      continue;
    }
    used.insert(found->first);
    const StoredValues* tensor = found->second;
    if (entry.part == StateEntry::Part::batches) {
      fit.left_out.push_back(tensor);
    } else if (without_ones(tensor->extent) == without_ones(entry.extent)) {
      fit.filled.push_back({entry, tensor});
    } else if (is_other_number_of_classes(entry, *tensor, heads)) {
      fit.other_head.push_back({entry, tensor});
    } else {
      fit.misshapen.push_back({entry, tensor});
    }
  }
  separate(fit, fit.missing_head, [&](const StateEntry& entry) { return entry.name.starts_with(heads.front()); });
  separate(fit, fit.missing_auxiliary,
           [&](const StateEntry& entry) { return !of_logits[static_cast<std::size_t>(entry.node)]; });
  for (const auto& [name, tensor] : tensors)
    if (!used.contains(name)) (is_auxiliary(name) ? fit.left_out : fit.unexpected).push_back(tensor);
  return fit;
}

float norm_epsilon_of(Library library, const std::string& model) {
  switch (library) {
    case Library::timm:
      return usual_norm_epsilon;  // of all whose modules it names otherwise
    case Library::torchvision:
      return usual_norms(model).epsilon;
  }
  return usual_norm_epsilon;
}

Index classes_of(const StateFit& fit, const Plan& plan) {
  if (!fit.fits()) return 0;
  const std::string head = head_prefixes(plan.graph).front();
  for (const auto* part : {&fit.other_head, &fit.filled})
    for (const FilledEntry& each : *part)
      if (each.entry.name.starts_with(head)) return each.from->extent.front();
  return 0;
}

std::vector<GraphSpec> networks_that_fit(const TensorFile& file) {
  std::vector<GraphSpec> fitting;
  for (const GraphSpec& candidate : candidates()) {
    const auto is_it = [&](const GraphSpec& other) { return other.model == candidate.model; };
    if (std::any_of(fitting.begin(), fitting.end(), is_it)) continue;  // its options change no shapes
    for (const Index channels : {3, 1}) {
      GraphSpec spec = with_usual_input(candidate, 0, channels, 0);
      spec.classes = fitting_classes(spec, file);
      if (spec.classes == 0) continue;
      fitting.push_back(spec);
      break;
    }
  }
  return fitting;
}

void fail_misfit(const StateFit& fit, const Plan& plan, const TensorFile& file) {
  std::vector<std::string> others;
  for (const auto& [entry, from] : fit.misshapen)
    if (!from->fault.empty()) fail(Exit::data, "{}", from->fault);  // its shape isn't known either
  if (fit.fits_body() && !fit.fits())
    fail(Exit::data, "'{}' ({}, {}) holds {} without its {} ({}); 'convoy train --weights' starts a new one",
         file.path(), name_of(file.format()), counted(file.tensors().size(), "tensor"), plan.graph.model,
         fit.missing_head.empty() ? "auxiliary classifiers" : "last layer", differences(fit));
  if (const Index channels = other_channels(fit, plan); channels != 0)
    fail(
        Exit::data,
        "'{}' ({}) takes images of {}, and this {} takes images of {}; if a data set has the latter, prepare it again with "
        "--color rgb (3) or grey (1)",
        file.path(), name_of(file.format()), counted(channels, "channel"), plan.graph.model,
        counted(as<Input>(plan.graph.nodes.front())->channels, "channel"));
  if (file.format() == TensorFormat::onnx) others.push_back("--model-file " + file.path());
  for (const GraphSpec& spec : networks_that_fit(file)) others.push_back(model_words(spec));
  const std::string remedy = !fit.fits() && !others.empty() ? fmt::format("it fits {}", fmt::join(others, " or "))
                                                            : "give the model and the classes that it was made with";
  fail(Exit::data, "'{}' ({}, {}) doesn't fit {} ({}); {}", file.path(), name_of(file.format()),
       counted(file.tensors().size(), "tensor"), plan.graph.model, differences(fit), remedy);
}

std::uint64_t fill_set(const std::vector<FilledEntry>& filled, const TensorFile& file, std::span<float> values,
                       std::span<float> statistics) {
  std::uint64_t digest = 0;
  for (const auto& [entry, from] : filled) {
    NamedTensor tensor{.name = entry.name, .extent = entry.extent, .values = file.read(*from)};
    if (!std::all_of(tensor.values.begin(), tensor.values.end(), [](float value) { return std::isfinite(value); }))
      fail(Exit::data, "tensor '{}' of '{}' has values that are not finite; give another file", from->name,
           file.path());
    const std::span<float> block = entry.part == StateEntry::Part::values ? values : statistics;
    std::copy(tensor.values.begin(), tensor.values.end(), block.begin() + entry.range.begin);
    digest = digest_of_tensor(tensor, digest);
  }
  return digest;
}

}  // namespace convoy
