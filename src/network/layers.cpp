// SPDX-License-Identifier: Apache-2.0
#include "network/layers.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "core/errors.hpp"
#include "core/text.hpp"
#include "network/builder.hpp"

namespace convoy {
namespace {

using Fill = Initialiser::Fill;

constexpr const char* classes_word = "classes";
constexpr const char* start_field = "start";
constexpr const char* fixed_field = "fixed";

constexpr std::array<std::pair<const char*, Fill>, 13> fills{{{"zeros", Fill::zeros},
                                                              {"ones", Fill::ones},
                                                              {"he_fan_out_normal", Fill::he_fan_out_normal},
                                                              {"he_fan_in_normal", Fill::he_fan_in_normal},
                                                              {"he_fan_in_uniform", Fill::he_fan_in_uniform},
                                                              {"xavier_uniform", Fill::xavier_uniform},
                                                              {"xavier_normal", Fill::xavier_normal},
                                                              {"normal", Fill::normal},
                                                              {"truncated_normal", Fill::truncated_normal},
                                                              {"uniform", Fill::uniform},
                                                              {"orthogonal", Fill::orthogonal},
                                                              {"dirac", Fill::dirac},
                                                              {"whitening", Fill::whitening}}};

constexpr std::array<std::pair<const char*, GateKind>, 2> gates{
    {{"sigmoid", GateKind::sigmoid}, {"hard_sigmoid", GateKind::hard_sigmoid}}};
constexpr std::array<std::pair<const char*, Pool::Mode>, 2> pools{
    {{"max", Pool::Mode::max}, {"average", Pool::Mode::average}}};

[[noreturn]] void refuse(const LayerSpec& layer, const std::string& text) {
  fail(Exit::usage, "{}{}layer '{}' {}", layer.origin, layer.origin.empty() ? "" : ": ", layer.name, text);
}

// Values as texts.

template <class Enum, std::size_t N>
std::string word_of(const std::array<std::pair<const char*, Enum>, N>& words, Enum value) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& each) { return each.second == value; });
  require(found != words.end(), "a value without a word");
  return found->first;
}

template <class Enum, std::size_t N>
Enum read_word(const LayerSpec& layer, const std::array<std::pair<const char*, Enum>, N>& words,
               const std::string& field, const std::string& text) {
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (text == word) return value;
    known.emplace_back(word);
  }
  refuse(layer, fmt::format("has {} = '{}'; it is one of {}", field, text, fmt::join(known, ", ")));
}

std::string print(Index value) { return fmt::format("{}", value); }
std::string print(int value) { return fmt::format("{}", value); }
std::string print(float value) { return fmt::format("{}", value); }
std::string print(bool value) { return value ? "true" : "false"; }
std::string print(GateKind value) { return word_of(gates, value); }
std::string print(Pool::Mode value) { return word_of(pools, value); }
std::string print(ActivationKind value) { return activation_word(value); }

struct Reader {
  const LayerSpec& layer;
  Index classes;

  template <class Number>
  void read_number(Number& to, const std::string& field, const std::string& text) const {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (error != std::errc{} || end != text.data() + text.size())
      refuse(layer, fmt::format("has {} = '{}', which is not a number of that kind", field, text));
  }
  void read(Index& to, const std::string& field, const std::string& text) const {
    if (text == classes_word) {
      to = classes;
    } else {
      read_number(to, field, text);
    }
  }
  void read(int& to, const std::string& field, const std::string& text) const { read_number(to, field, text); }
  void read(float& to, const std::string& field, const std::string& text) const { read_number(to, field, text); }
  void read(bool& to, const std::string& field, const std::string& text) const {
    if (text != "true" && text != "false")
      refuse(layer, fmt::format("has {} = '{}'; it is true or false", field, text));
    to = text == "true";
  }
  void read(GateKind& to, const std::string& field, const std::string& text) const {
    to = read_word(layer, gates, field, text);
  }
  void read(Pool::Mode& to, const std::string& field, const std::string& text) const {
    to = read_word(layer, pools, field, text);
  }
  void read(ActivationKind& to, const std::string&, const std::string& text) const {
    try {
      to = activation_of_word(text);
    } catch (const Error& error) {
      refuse(layer, fmt::format("has an {}", error.what()));
    }
  }
};

std::string print(const Initialiser& start) {
  const std::string word = word_of(fills, start.fill);
  return start.value == 0 ? word : fmt::format("{}:{}", word, start.value);
}

Initialiser read_start(const LayerSpec& layer, const std::string& text) {
  const std::size_t colon = text.find(':');
  Initialiser start{read_word(layer, fills, start_field, text.substr(0, colon))};
  if (start.fill == Fill::orthogonal) start.value = 1;
  if (colon == std::string::npos) return start;
  if (start.fill != Fill::normal && start.fill != Fill::truncated_normal && start.fill != Fill::uniform &&
      start.fill != Fill::orthogonal)
    refuse(layer, fmt::format("has {} = '{}', but {} takes no number", start_field, text, text.substr(0, colon)));
  Reader{layer, 0}.read(start.value, start_field, text.substr(colon + 1));
  constexpr float most = 1000;
  if (!(start.value > 0 && start.value <= most))
    refuse(layer, fmt::format("has {} = '{}'; the number lies above 0 and up to {:g}", start_field, text, most));
  return start;
}

/// Calls `use` with a default of each operation that a file can name; those of a batch norm are the run's.
template <class Use, class... Each>
void for_each_operation(const Use& use, const std::variant<Each...>*) {
  const auto call = [&]<class Operation>(const Operation* none) {
    if constexpr (requires { Operation::word; }) use(Operation{});
    static_cast<void>(none);
  };
  (call(static_cast<const Each*>(nullptr)), ...);
}

/// `in`: the input's channels; `values`: all of its numbers, which a linear layer reads.
Attributes read_attributes(const LayerSpec& layer, const GraphSpec& spec, Index in, Index values) {
  std::optional<Attributes> found;
  std::vector<std::string> words;
  for_each_operation(
      [&](auto operation) {
        using Operation = decltype(operation);
        words.emplace_back(Operation::word);
        if (layer.operation != Operation::word) return;
        if constexpr (requires { operation.in; }) operation.in = std::is_same_v<Operation, Linear> ? values : in;
        if constexpr (requires { operation.channels; }) operation.channels = in;
        if constexpr (requires { operation.momentum; }) {
          const Norms norms = norms_of(spec);
          operation.momentum = norms.momentum;
          operation.epsilon = norms.epsilon;
        }
        std::map<std::string, std::string> left = layer.fields;
        left.erase(start_field);
        left.erase(fixed_field);
        std::vector<std::string> known;
        Operation::fields(operation, [&](const char* name, auto& member) {
          known.emplace_back(name);
          const auto given = left.find(name);
          if (given == left.end()) return;
          Reader{layer, spec.classes}.read(member, name, given->second);
          left.erase(given);
        });
        if (!left.empty())
          refuse(layer, fmt::format("has '{}', which {} doesn't have; it has {}", left.begin()->first, Operation::word,
                                    known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
        if constexpr (std::is_same_v<Operation, Activation>) {
          if (!spec.activation.empty() && operation.kind != ActivationKind::scale)
            operation = {.kind = activation_kind(spec.activation)};
          if (operation.kind == ActivationKind::leaky_relu && operation.slope == 0) operation.slope = spec.leaky_slope;
        }
        found = operation;
      },
      static_cast<const Attributes*>(nullptr));
  if (found) return *found;
  const std::string meant = nearest(layer.operation, words);
  refuse(layer, fmt::format("is a '{}', which is no operation; {}{}", layer.operation,
                            meant.empty() ? "there are " : fmt::format("did you mean '{}'? There are ", meant),
                            fmt::join(words, ", ")));
}

/// The last layer with a weight.
const LayerSpec* classifier(const std::vector<LayerSpec>& layers) {
  const auto found = std::find_if(layers.rbegin(), layers.rend(), [](const LayerSpec& layer) {
    return layer.operation == Linear::word || layer.operation == Convolution::word;
  });
  return found == layers.rend() ? nullptr : &*found;
}

void check_read(const std::vector<LayerSpec>& layers) {
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    const auto reads = [&](const LayerSpec& other) {
      return std::find(other.inputs.begin(), other.inputs.end(), layers[i].name) != other.inputs.end();
    };
    if (std::none_of(layers.begin() + static_cast<std::ptrdiff_t>(i) + 1, layers.end(), reads))
      refuse(layers[i], "is read by no later layer; drop it, or name it in the 'from' of another");
  }
}

/// Whether the number of the last layer's values follows from the size of the images.
bool follows_from_images(const std::vector<LayerSpec>& layers) {
  std::string name = layers.back().name;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    if (layer->name != name) continue;
    if (layer->operation == Linear::word || layer->operation == GlobalAveragePool::word ||
        layer->operation == AdaptiveAveragePool::word)
      return false;
    name = layer->inputs.front();
  }
  return true;
}

/// The size of images and the number of classes may be those of no data set yet: messages don't tell what they make.
[[noreturn]] void refuse_end(const std::vector<LayerSpec>& layers, Index values) {
  const std::string made = follows_from_images(layers) ? "a number of values that follows from the size of the images"
                                                       : fmt::format("{} for each image", counted(values, "value"));
  refuse(layers.back(),
         fmt::format("ends the network with {}, but a network needs one per class of the data set; give the last "
                     "linear layer out={}",
                     made, classes_word));
}

/// With what follows from its inputs, but for a number that follows from the size of the images.
std::string text_of(const Attributes& attributes) {
  const auto* const linear = std::get_if<Linear>(&attributes);
  return linear == nullptr ? describe(attributes) : fmt::format("linear, out={}", linear->out);
}

}  // namespace

Graph build_layers(const GraphSpec& spec) {
  for (const auto& [name, value] : spec.options)
    if (!value.empty()) fail(Exit::usage, "a network from a file has no --{}; leave it out, or change the file", name);
  GraphBuilder net(spec, ActivationKind::relu);
  std::map<std::string, NodeId> nodes{{"input", net.input()}};
  const LayerSpec* const last = classifier(spec.layers);
  NodeId node = 0;
  for (const LayerSpec& layer : spec.layers) {
    if (nodes.count(layer.name) > 0) refuse(layer, "has the name of an earlier layer");
    if (layer.inputs.empty()) refuse(layer, "reads nothing");
    std::vector<NodeId> inputs;
    for (const std::string& name : layer.inputs) {
      const auto from = nodes.find(name);
      if (from == nodes.end()) refuse(layer, fmt::format("reads '{}', but no earlier layer has this name", name));
      inputs.push_back(from->second);
    }
    const Index values = net.values(inputs.front());
    const Attributes attributes = read_attributes(layer, spec, net.channels(inputs.front()), values);
    const Contract contract = contract_of(attributes);
    if (!contract.possible) refuse(layer, fmt::format("is impossible ({})", text_of(attributes)));
    if (inputs.size() < contract.inputs || (inputs.size() > contract.inputs && !contract.more_inputs))
      refuse(layer, fmt::format("reads {} (a {} reads {}{})", counted(inputs.size(), "layer"), layer.operation,
                                contract.inputs, contract.more_inputs ? " or more" : ""));
    const auto start = layer.fields.find(start_field);
    const Initialiser usual =
        net.usual_start(attributes, values, &layer == last ? GraphBuilder::Place::last : GraphBuilder::Place::inside);
    const Initialiser own = start == layer.fields.end() ? usual : read_start(layer, start->second);
    const bool norm = std::holds_alternative<BatchNorm>(attributes);
    if (start != layer.fields.end() && (contract.parameters.empty() || (norm && own.fill != Fill::zeros)))
      refuse(layer, fmt::format("has a '{}', which {} can't have", start_field,
                                norm ? "a batch norm (but for zeros)" : "a layer without a weight"));
    const bool passes_on = own.fill == Fill::dirac || own.fill == Fill::whitening;
    if (passes_on && !std::holds_alternative<Convolution>(attributes))
      refuse(layer, fmt::format("has a '{}' that only a convolution can have", start_field));
    const auto fixed = layer.fields.find(fixed_field);
    if (fixed != layer.fields.end() && contract.parameters.empty())
      refuse(layer, fmt::format("has a '{}', which a layer without a weight can't have", fixed_field));
    const bool asked = !spec.initialiser.empty() && own.fill != Fill::zeros && own.fill != Fill::whitening;
    try {
      node = net.append(layer.name, std::move(inputs), attributes, asked ? usual : own);
      if (start != layer.fields.end() && own.fill == Fill::zeros) net.start_at_zero(node);
      bool fix = false;
      if (fixed != layer.fields.end()) Reader{layer, spec.classes}.read(fix, fixed_field, fixed->second);
      if (fix) net.fix(node);
    } catch (const Error& error) {
      if (layer.origin.empty()) throw;
      fail(error.code(), "{}: {}", layer.origin, error.what());
    }
    nodes[layer.name] = node;
  }
  check_read(spec.layers);
  if (const Index values = net.values(node); values != spec.classes) refuse_end(spec.layers, values);
  return net.finish(node, spec.model);
}

LayerSpec layer_of(const std::string& name, const Attributes& attributes) {
  LayerSpec layer{.name = name, .operation = {}, .fields = {}, .inputs = {}};
  std::visit(
      [&](const auto& operation) {
        using Operation = std::decay_t<decltype(operation)>;
        if constexpr (requires { Operation::word; }) {
          layer.operation = Operation::word;
          std::map<std::string, std::string> defaults;
          const Operation none{};
          Operation::fields(none, [&](const char* field, const auto& member) { defaults[field] = print(member); });
          Operation::fields(operation, [&](const char* field, const auto& member) {
            if (print(member) != defaults[field]) layer.fields[field] = print(member);
          });
        }
      },
      attributes);
  return layer;
}

std::vector<LayerSpec> layers_of(const Graph& graph) {
  if (class_layers(graph).size() > 1)
    fail(Exit::usage, "a network file can't describe the auxiliary classifiers of {}; leave --aux-heads out",
         graph.model);
  std::vector<LayerSpec> layers;
  GraphSpec plain;
  plain.classes = graph.classes;
  const GraphBuilder usual(plain, ActivationKind::relu);
  NodeId last = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (as<Linear>(graph.nodes[i]) != nullptr || as<Convolution>(graph.nodes[i]) != nullptr)
      last = static_cast<NodeId>(i);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    LayerSpec layer = layer_of(node.name, node.attributes);
    if (layer.operation.empty()) continue;
    for (const NodeId from : node.inputs) layer.inputs.push_back(graph.nodes[static_cast<std::size_t>(from)].name);
    const Index in = std::visit(
        [](const auto& operation) -> Index {
          if constexpr (requires { operation.in; }) return operation.in;
          return 0;
        },
        node.attributes);
    const bool is_last = static_cast<NodeId>(i) == last;
    if (is_last) layer.fields["out"] = classes_word;
    if (!node.parameters.empty()) {
      const Kind kind = node.parameters.front().kind;
      const Initialiser own = node.parameters.front().initialiser;
      const Initialiser expected = kind == Kind::norm_scale ? Initialiser{Fill::ones}
                                                            : usual.usual_start(node.attributes, in,
                                                                                is_last ? GraphBuilder::Place::last
                                                                                        : GraphBuilder::Place::inside);
      if (own.fill != expected.fill || own.value != expected.value) layer.fields[start_field] = print(own);
      if (node.parameters.front().fixed) layer.fields[fixed_field] = print(true);
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace convoy
