// SPDX-License-Identifier: Apache-2.0
#include "interchange/onnx_network.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "core/errors.hpp"
#include "interchange/formats.hpp"
#include "network/layers.hpp"

namespace convoy {
namespace {

constexpr std::size_t most_layers = 20000;
/// The versions of ONNX's operators in which those that network/operations knows mean what it says. Before 7, Add and
/// Mul say by an attribute what is repeated, and BatchNormalization and Dropout that they are used for evaluation.
constexpr Index first_opset = 7, last_opset = 28;
constexpr std::size_t most_shown = 8;  ///< names in a message
constexpr Index most_values = 64;      ///< of a constant that an operation looks at
constexpr double nearness = 1e-4;      ///< exporters write sqrt(2) and 1 / 6 with any number of digits

/// Values of the graph by the names of a form.
using Binding = std::map<std::string, std::string>;

struct Layer {
  std::size_t at = 0;  ///< its last operator
  Attributes operation;
  bool transposed = false;
  std::vector<std::string> inputs;                             ///< values
  std::vector<std::pair<std::string, std::string>> tensors{};  ///< `weight`, and the constant that it is
};

bool is_data(const std::string& name) {
  return !name.empty() && name.front() == 'x' &&
         std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool near(double a, double b) { return std::abs(a - b) <= nearness * std::abs(b); }

template <class... Each>
void for_each_operation(const auto& use, const std::variant<Each...>*) {
  const auto call = [&]<class Operation>(const Operation* none) {
    if constexpr (requires { Operation::onnx_forms(); }) use(none);
  };
  (call(static_cast<const Each*>(nullptr)), ...);
}

/// Forms of one operation, and what makes the operation of a site.
struct Recogniser {
  std::vector<OnnxOperators> forms;
  bool more_inputs = false;
  std::function<std::optional<std::pair<Attributes, bool>>(const OnnxSite&)> make;
};

const std::vector<Recogniser>& recognisers() {
  static const std::vector<Recogniser> all = [] {
    std::vector<Recogniser> made;
    for_each_operation(
        [&]<class Operation>(const Operation*) {
          made.push_back({.forms = Operation::onnx_forms(),
                          .more_inputs = Operation{}.contract().more_inputs,
                          .make = [](const OnnxSite& site) -> std::optional<std::pair<Attributes, bool>> {
                            const auto found = Operation::from_onnx(site);
                            if (!found) return std::nullopt;
                            return std::pair(Attributes(found->operation), found->transposed);
                          }});
        },
        static_cast<const Attributes*>(nullptr));
    return made;
  }();
  return all;
}

class OnnxGraph {
 public:
  OnnxGraph(const File& from, OnnxFile onnx) : from_(from), onnx_(std::move(onnx)) {
    for (const OnnxTensor& tensor : onnx_.tensors) tensors_.emplace(tensor.name, &tensor);
    for (std::size_t i = 0; i < onnx_.nodes.size(); ++i) {
      const OnnxNode& node = onnx_.nodes[i];
      for (const std::string& input : node.inputs)
        if (const auto maker = makers_.find(input); !input.empty() && maker == makers_.end()) pending_.insert(input);
      if (!node.outputs.empty()) makers_.emplace(node.outputs.front(), i);
      if (node.constant && !node.outputs.empty()) tensors_.emplace(node.outputs.front(), &*node.constant);
      // So that every walk towards the input ends.
      if (!node.outputs.empty() && pending_.count(node.outputs.front()) > 0)
        fail(Exit::data, "node '{}' ({}) comes after what reads it; export the file again", node.shown(), node.type);
    }
  }

  const OnnxFile& onnx() const { return onnx_; }
  const OnnxNode& node(std::size_t at) const { return onnx_.nodes[at]; }
  const OnnxTensor* tensor(const std::string& value) const {
    const auto found = tensors_.find(value);
    return found == tensors_.end() ? nullptr : found->second;
  }
  std::optional<std::size_t> maker(const std::string& value) const {
    const auto found = makers_.find(value);
    return found == makers_.end() ? std::nullopt : std::optional(found->second);
  }

  /// The value without operators that change nothing.
  std::string resolve(std::string value) const {
    constexpr int most_steps = 64;
    for (int i = 0; i < most_steps && tensor(value) == nullptr; ++i) {
      const auto at = maker(value);
      if (!at || !changes_nothing(node(*at))) break;
      value = node(*at).inputs.front();
    }
    return value;
  }

  std::optional<OnnxConstant> constant(const std::string& value) const {
    const std::string name = resolve(value);
    if (const OnnxTensor* found = tensor(name)) return OnnxConstant{found->extent, values_of(*found)};
    const auto at = maker(name);
    if (!at || node(*at).type != "Concat" || node(*at).inputs.size() > most_dimensions) return std::nullopt;
    // A shape that is put together from numbers and the sides of others.
    OnnxConstant joined{{}, {}};
    bool any = false;
    for (const std::string& part : node(*at).inputs) {
      const OnnxTensor* found = tensor(resolve(part));
      const std::vector<double> values = found == nullptr ? std::vector<double>{-1} : values_of(*found);
      any = any || found != nullptr;
      joined.values.insert(joined.values.end(), values.begin(), values.end());
    }
    joined.extent = {static_cast<Index>(joined.values.size())};
    const bool shape = any && joined.values.size() <= most_dimensions && !has_pixels(node(*at));
    return shape ? std::optional(joined) : std::nullopt;
  }

  std::optional<Layer> recognise(std::size_t at) const {
    for (const Recogniser& each : recognisers())
      for (std::size_t form = 0; form < each.forms.size(); ++form) {
        const OnnxOperators& operators = each.forms[form];
        auto binding = match(operators, operators.size() - 1, at, {});
        if (!binding && each.more_inputs && node(at).type == operators.back().type) binding = bind_all(at);
        if (!binding) continue;
        const OnnxSite site = site_of(at, form, operators, *binding);
        if (auto made = each.make(site)) return make_layer(at, *made, operators, *binding);
      }
    return std::nullopt;
  }

 private:
  /// Another use of Concat joins maps: then what isn't constant is no side of a shape.
  bool has_pixels(const OnnxNode& concat) const {
    return std::any_of(concat.inputs.begin(), concat.inputs.end(), [&](const std::string& part) {
      const auto at = maker(resolve(part));
      return at && tensor(resolve(part)) == nullptr && node(*at).type != "Unsqueeze" && node(*at).type != "Reshape" &&
             node(*at).type != "Shape";
    });
  }

  bool changes_nothing(const OnnxNode& node) const {
    if (node.inputs.empty() || !node.domain.empty()) return false;
    if (node.type == "Identity" || (node.type == "Concat" && node.inputs.size() == 1)) return true;
    if (node.type != "AveragePool" && node.type != "MaxPool") return false;
    bool unit = false;
    for (const OnnxAttribute& attribute : node.attributes) {
      const auto* sides = std::get_if<std::vector<Index>>(&attribute.value);
      if (attribute.name == "kernel_shape") unit = sides != nullptr && *sides == std::vector<Index>{1, 1};
      if (attribute.name == "strides" && (sides == nullptr || *sides != std::vector<Index>{1, 1})) return false;
      if (attribute.name == "pads" && (sides == nullptr || *sides != std::vector<Index>(4, 0))) return false;
    }
    return unit;
  }

  /// Empty: there are many, or they are no numbers.
  std::vector<double> values_of(const OnnxTensor& tensor) const {
    const auto type = type_of(tensor);
    if (!tensor.values.empty() || !type || tensor.place.bytes == 0 || !tensor.place.beside.empty() ||
        tensor.place.bytes > static_cast<std::uint64_t>(most_values) * bytes_of(*type))
      return tensor.values;
    StoredValues stored{.name = tensor.name, .type = *type, .extent = tensor.extent, .place = tensor.place};
    const std::vector<float> values = read_in_order(from_, stored);
    return {values.begin(), values.end()};
  }

  std::optional<Binding> bind_all(std::size_t at) const {
    Binding binding;
    for (std::size_t i = 0; i < node(at).inputs.size(); ++i)
      binding[i == 0 ? "x" : fmt::format("x{}", i)] = resolve(node(at).inputs[i]);
    return binding;
  }

  static bool has_attributes(const OnnxNode& node, const OnnxOperator& wanted) {
    return std::all_of(wanted.attributes.begin(), wanted.attributes.end(), [&](const OnnxAttribute& attribute) {
      const auto found = std::find_if(node.attributes.begin(), node.attributes.end(),
                                      [&](const OnnxAttribute& each) { return each.name == attribute.name; });
      // ONNX's default, which exporters leave out.
      if (found == node.attributes.end()) return node.type == "HardSigmoid" && attribute.name == "beta";
      const auto *a = std::get_if<float>(&found->value), *b = std::get_if<float>(&attribute.value);
      return a != nullptr && b != nullptr ? near(*a, *b) : found->value == attribute.value;
    });
  }

  /// The form up to its operator `last`, which must be the node.
  std::optional<Binding> match(const OnnxOperators& form, std::size_t last, std::size_t at,
                               const Binding& bound) const {
    const OnnxOperator& wanted = form[last];
    const OnnxNode& given = node(at);
    if (given.type != wanted.type || !given.domain.empty() || given.inputs.size() > wanted.reads.size() ||
        !has_attributes(given, wanted))
      return std::nullopt;
    std::vector<std::string> inputs = given.inputs;
    if (auto found = match_reads(form, last, inputs, bound)) return found;
    if (inputs.size() != 2 || (given.type != "Mul" && given.type != "Add")) return std::nullopt;
    std::swap(inputs[0], inputs[1]);
    return match_reads(form, last, inputs, bound);
  }

  std::optional<Binding> match_reads(const OnnxOperators& form, std::size_t last,
                                     const std::vector<std::string>& inputs, Binding bound) const {
    const std::vector<OnnxValue>& reads = form[last].reads;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const auto* number = std::get_if<float>(&reads[i]);
      const auto* name = std::get_if<std::string>(&reads[i]);
      const bool absent = i >= inputs.size() || inputs[i].empty();
      const std::string value = absent ? std::string() : resolve(inputs[i]);
      if (number != nullptr) {
        const auto found = absent ? std::nullopt : constant(value);
        if (!found || found->values.size() != 1 || !near(found->values[0], *number)) return std::nullopt;
        continue;
      }
      std::size_t maker_in_form = 0;
      while (maker_in_form < last && form[maker_in_form].writes != *name) ++maker_in_form;
      if (maker_in_form < last) {
        const auto at = maker(value);
        const auto found = at ? match(form, maker_in_form, *at, bound) : std::nullopt;
        if (!found) return std::nullopt;
        bound = *found;
      } else if (is_data(*name)) {
        if (absent || tensor(value) != nullptr) return std::nullopt;
        const auto [before, fresh] = bound.emplace(*name, value);
        if (!fresh && before->second != value) return std::nullopt;
      } else if (!absent) {
        if (tensor(value) == nullptr && !constant(value)) return std::nullopt;
        bound[*name] = value;
      }
    }
    return bound;
  }

  OnnxSite site_of(std::size_t at, std::size_t form, const OnnxOperators& operators, const Binding& binding) const {
    const OnnxNode& last = node(at);
    OnnxSite site{.node = last.shown(),
                  .inner = {},
                  .type = last.type,
                  .form = form,
                  .attributes = last.attributes,
                  .constants = {}};
    for (const auto& [name, value] : binding) {
      if (is_data(name)) continue;
      if (auto found = constant(value)) site.constants.emplace(name, std::move(*found));
    }
    site.outputs = static_cast<std::size_t>(
        std::count_if(last.outputs.begin(), last.outputs.end(), [](const std::string& name) { return !name.empty(); }));
    if (operators.size() == 1) return site;
    for (const std::string& input : last.inputs)
      if (const auto inner = maker(resolve(input)); inner && node(*inner).type == operators.front().type)
        site.inner = node(*inner).shown();
    return site;
  }

  Layer make_layer(std::size_t at, const std::pair<Attributes, bool>& made, const OnnxOperators& operators,
                   const Binding& binding) const {
    Layer layer{.at = at, .operation = made.first, .transposed = made.second, .inputs = {}};
    for (const auto& [name, value] : binding)
      if (is_data(name)) layer.inputs.push_back(value);
    if (binding.size() > 10) {  // x10 comes before x2
      layer.inputs.clear();
      for (std::size_t i = 0; i < binding.size(); ++i)
        layer.inputs.push_back(binding.at(i == 0 ? "x" : fmt::format("x{}", i)));
    }
    if (contract_of(layer.operation).parameters.empty()) return layer;
    for (const OnnxOperator& each : operators)
      for (const OnnxValue& read : each.reads) {
        const auto* name = std::get_if<std::string>(&read);
        const auto value = name == nullptr || is_data(*name) ? binding.end() : binding.find(*name);
        if (value != binding.end()) layer.tensors.emplace_back(*name, value->second);
      }
    return layer;
  }

  const File& from_;
  OnnxFile onnx_;
  std::map<std::string, const OnnxTensor*> tensors_;
  std::map<std::string, std::size_t> makers_;
  std::set<std::string> pending_;
};

/// Letters, digits, `_`, `-` and `.`: what the file of a network takes for a name.
std::string plain_name(std::string name) {
  while (!name.empty() && name.front() == '/') name.erase(0, 1);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  return name.empty() || name == "input" || name == "in" ? name + "_" : name;
}

class Network {
 public:
  explicit Network(const File& file) : file_(file), graph_(file, read_onnx_file(file)) {}

  OnnxNetwork read() {
    check_opset();
    find_input();
    find_layers(find_logits());
    name_layers();
    OnnxNetwork network;
    for (const Layer& layer : layers_) append(layer, network);
    network.spec.model = model_name();
    network.spec.channels = channels_;
    network.height = sides_.at(0);
    network.width = sides_.at(1);
    network.spec.image_size = network.height > 0 ? network.height : network.spec.image_size;
    give_classes(network);
    if (is_own()) network.metadata = graph_.onnx().metadata;
    return network;
  }

 private:
  void check_opset() const {
    const Index opset = graph_.onnx().opset;
    if (opset >= first_opset && opset <= last_opset) return;
    fail(
        Exit::data,
        "{}, and Convoy reads those of opset {} to {}; export it again with such an opset (torch.onnx.export: opset_version=17)",
        opset == 0 ? "the file doesn't say of which version its operators are"
                   : fmt::format("its operators are those of ONNX's opset {}", opset),
        first_opset, last_opset);
  }

  bool is_own() const { return graph_.onnx().producer == "convoy"; }

  /// PyTorch's exporters call every graph alike.
  std::string model_name() const {
    std::string name = graph_.onnx().graph;
    if (!is_own()) name = std::filesystem::path(file_.path()).stem().string();
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-' && c != ' ') c = '_';
    return name.empty() ? "network" : name;
  }

  void find_input() {
    std::vector<const OnnxInput*> inputs;
    for (const OnnxInput& each : graph_.onnx().inputs)
      if (graph_.tensor(each.name) == nullptr) inputs.push_back(&each);
    if (inputs.size() != 1 || inputs.front()->extent.size() != 4)
      fail(Exit::data,
           "the graph has {} inputs{}, and Convoy's networks take images n c h w; export it with one such input",
           inputs.size(), inputs.size() == 1 ? fmt::format(" of {} dimensions", inputs.front()->extent.size()) : "");
    input_ = inputs.front()->name;
    const std::vector<Index>& extent = inputs.front()->extent;
    if (extent[1] < 1 || extent[1] > most_side)
      fail(Exit::data, "its input has no fixed number of channels ({}); export it with one", extent[1]);
    channels_ = extent[1];
    for (std::size_t i = 0; i < 2; ++i)
      sides_.push_back(extent[i + 2] < 0 || extent[i + 2] > most_side ? 0 : extent[i + 2]);
    names_[input_] = "input";
    skip_normalisation();
  }

  /// What `convoy export --with-normalization` wrote: the metadata say the same, for a caller that feeds the network.
  void skip_normalisation() {
    if (!is_own()) return;
    for (const OnnxNode& node : graph_.onnx().nodes) {
      const bool own = node.inputs.size() == 2 && names_.count(node.inputs[0]) > 0 &&
                       graph_.tensor(node.inputs[1]) != nullptr && (node.type == "Sub" || node.type == "Div");
      if (own && !node.outputs.empty()) names_[node.outputs.front()] = "input";
    }
  }

  /// Of several outputs the one that is called so, unless all are the same without what ends them.
  std::string find_logits() const {
    const std::vector<std::string>& outputs = graph_.onnx().outputs;
    if (outputs.empty()) fail(Exit::data, "the graph has no output; export it with its logits");
    std::set<std::string> values;
    for (const std::string& output : outputs) values.insert(logits_of(output));
    if (values.size() == 1) return *values.begin();
    const std::string name = "logits";
    if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) return logits_of(name);
    const auto shown = outputs.begin() + static_cast<std::ptrdiff_t>(std::min(most_shown, outputs.size()));
    fail(
        Exit::data,
        "the graph has {} outputs ({}{}), and it doesn't say which are the logits; export it with one output, or call that one '{}'",
        outputs.size(), fmt::join(outputs.begin(), shown, ", "), shown == outputs.end() ? "" : " ...", name);
  }

  std::string logits_of(const std::string& output) const {
    std::string value = graph_.resolve(output);
    for (auto at = graph_.maker(value); at && ends(graph_.node(*at)); at = graph_.maker(value))
      value = graph_.resolve(graph_.node(*at).inputs.front());
    return value;
  }

  /// Behind the logits. A Flatten of the network itself stays, so that its digest is the same.
  bool ends(const OnnxNode& node) const {
    const OnnxSite site{
        .node = node.shown(), .inner = {}, .type = node.type, .attributes = node.attributes, .constants = {}};
    return node.domain.empty() && Loss::ends_onnx(site) && !node.inputs.empty() &&
           (node.type != "Flatten" || node.name == "loss");
  }

  [[noreturn]] static void refuse(const OnnxNode& node) {
    if (!node.domain.empty())
      fail(
          Exit::data,
          "node '{}' is an operator {} of the domain '{}', and Convoy knows ONNX's own operators; give the graph as the exporter "
          "wrote it, before another program optimises or quantises it",
          node.shown(), node.type, node.domain);
    fail(
        Exit::data,
        "node '{}' is an operator {} on what it reads, which is no operation of Convoy's networks (docs/networks.md lists "
        "them); change the network, and export it again",
        node.shown(), node.type);
  }

  void find_layers(const std::string& logits) {
    std::vector<std::string> wanted{logits};
    std::set<std::string> seen;
    while (!wanted.empty()) {
      const std::string value = std::move(wanted.back());
      wanted.pop_back();
      if (names_.count(value) > 0 || !seen.insert(value).second) continue;
      const auto at = graph_.maker(value);
      if (!at) fail(Exit::data, "nothing makes the value '{}', which the network reads; export the file again", value);
      auto layer = graph_.recognise(*at);
      if (!layer) refuse(graph_.node(*at));
      wanted.insert(wanted.end(), layer->inputs.begin(), layer->inputs.end());
      layers_.push_back(std::move(*layer));
      if (layers_.size() > most_layers)
        fail(Exit::data, "the graph has more than {} layers; give a smaller one", most_layers);
    }
    if (layers_.empty()) fail(Exit::data, "the graph has no layers; give one of a trained network");
    std::sort(layers_.begin(), layers_.end(), [](const Layer& a, const Layer& b) { return a.at < b.at; });
  }

  /// By its weight if that is called so (`layer1.0.conv1.weight`), else by its last operator.
  void name_layers() {
    std::set<std::string> taken{"input"};
    std::map<std::string, int> next;  // so that thousands of layers of one name take one step each
    for (const Layer& layer : layers_) {
      const OnnxNode& node = graph_.node(layer.at);
      std::string name = plain_name(node.shown());
      const std::string suffix = ".weight";
      if (!layer.tensors.empty() && layer.tensors.front().second.ends_with(suffix)) {
        const std::string& weight = layer.tensors.front().second;
        const std::string module = plain_name(weight.substr(0, weight.size() - suffix.size()));
        if (taken.count(module) == 0) name = module;
      }
      const std::string base = name;
      for (int& i = next.emplace(base, 2).first->second; !taken.insert(name).second; ++i)
        name = fmt::format("{}_{}", base, i);
      names_[node.outputs.front()] = name;
    }
  }

  void append(const Layer& layer, OnnxNetwork& network) const {
    const OnnxNode& node = graph_.node(layer.at);
    const std::string& name = names_.at(node.outputs.front());
    LayerSpec spec = layer_of(name, layer.operation);
    for (const std::string& input : layer.inputs) spec.inputs.push_back(names_.at(input));
    // Not the run's: the weights learned with it.
    if (const auto* norm = std::get_if<BatchNorm>(&layer.operation))
      spec.fields["epsilon"] = fmt::format("{}", norm->epsilon);
    network.spec.layers.push_back(std::move(spec));
    for (const auto& [part, value] : layer.tensors) {
      const OnnxTensor* tensor = graph_.tensor(value);
      if (tensor == nullptr || !type_of(*tensor) || tensor->place.bytes == 0)
        fail(Exit::data,
             "the {} of node '{}' ({}) is no constant of the file, or of a type that isn't read; export it as float",
             part, node.shown(), node.type);
      StoredValues stored{.name = name + "." + part,
                          .type = *type_of(*tensor),
                          .extent = tensor->extent,
                          .strides = row_major(tensor->extent),
                          .place = tensor->place};
      if (layer.transposed && part == "weight") {
        std::reverse(stored.extent.begin(), stored.extent.end());
        std::reverse(stored.strides.begin(), stored.strides.end());
      }
      network.tensors.push_back(std::move(stored));
    }
  }

  /// The last layer with a weight makes the classes, so that a training may have another number of them.
  void give_classes(OnnxNetwork& network) const {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const auto* linear = std::get_if<Linear>(&layers_[i].operation);
      const auto* convolution = std::get_if<Convolution>(&layers_[i].operation);
      if (linear == nullptr && convolution == nullptr) continue;
      network.spec.classes = linear != nullptr ? linear->out : convolution->out;
      network.spec.layers[i].fields["out"] = "classes";
      return;
    }
    fail(Exit::data, "the graph has no convolution and no linear layer; give one of a trained network");
  }

  const File& file_;
  const OnnxGraph graph_;
  std::string input_;
  Index channels_ = 0;
  std::vector<Index> sides_;
  std::vector<Layer> layers_;
  std::map<std::string, std::string> names_;  ///< of values: the layer that makes each
};

}  // namespace

OnnxNetwork read_onnx_network(const File& file) try { return Network(file).read(); } catch (const Error& error) {
  const std::string text = error.what();
  if (text.find(file.path()) != std::string::npos) throw;
  fail(error.code(), "'{}': {}", file.path(), text);
}

}  // namespace convoy
