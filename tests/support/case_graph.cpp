// SPDX-License-Identifier: Apache-2.0
#include "support/case_graph.hpp"

#include <cctype>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/formula.hpp"

namespace convoy {
namespace {

/// `k4r3` -> k: 4, r: 3.
std::map<char, Index> numbers_of(const std::string& text) {
  std::map<char, Index> numbers;
  for (std::size_t i = 0; i < text.size();) {
    const char letter = text[i++];
    const std::size_t begin = i;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0) ++i;
    if (begin == i) throw std::runtime_error("a letter without a number in '" + text + "'");
    numbers[letter] = std::stoll(text.substr(begin, i - begin));
  }
  return numbers;
}

class CaseBuilder {
 public:
  explicit CaseBuilder(const reference::Tensor& input) {
    result_.input = input;
    result_.graph.model = "case";
    result_.graph.classes = 5;
    top_ = append("input", Input{input.c}, {});
  }

  void apply(const std::string& word) {
    const std::size_t colon = word.find(':');
    const std::string op = word.substr(0, colon);
    const std::map<char, Index> given = numbers_of(colon == std::string::npos ? "" : word.substr(colon + 1));
    const auto number = [&](char letter, Index otherwise) {
      const auto found = given.find(letter);
      return found == given.end() ? otherwise : found->second;
    };
    const Shape x = top_.shape;
    const int r = static_cast<int>(number('r', 1)), s = static_cast<int>(number('s', 1)),
              p = static_cast<int>(number('p', 0));
    const auto put = [&](const Attributes& attributes) { top_ = append(op, attributes, {top_.node}); };
    if (op == "conv" || op == "make") {
      put(Convolution{x.c, number('k', x.c), r, s, p, static_cast<int>(number('g', 1)), number('b', 0) != 0,
                      static_cast<int>(number('t', 0)), static_cast<int>(number('q', 0))});
    } else if (op == "bn") {
      put(BatchNorm{.channels = x.c});
    } else if (op == "relu" || op == "tanh" || op == "gelu" || op == "silu" || op == "relu6" || op == "hard_swish") {
      put(Activation{activation_kind(op), 0});
    } else if (op == "leaky") {
      put(Activation{ActivationKind::leaky_relu, 0.125F});
    } else if (op == "scale") {
      put(Activation{ActivationKind::scale, 0.375F});
    } else if (op == "maxpool" || op == "avgpool") {
      put(Pool{op == "maxpool" ? Pool::Mode::max : Pool::Mode::average, r, s, p, number('i', 0) == 0,
               number('c', 0) != 0});
    } else if (op == "lrn") {
      put(LocalResponseNorm{
          .size = r, .alpha = static_cast<float>(number('a', 1)), .k = static_cast<float>(number('k', 1))});
    } else if (op == "drop") {
      put(Dropout{static_cast<float>(number('e', 4)) / 8});
    } else if (op == "gap") {
      put(GlobalAveragePool{});
    } else if (op == "adapt") {
      put(AdaptiveAveragePool{r});
    } else if (op == "flatten") {
      put(Flatten{});
    } else if (op == "linear") {
      put(Linear{x.c, number('k', x.c)});
    } else if (op == "fork") {
      other_ = top_;
    } else if (op == "swap") {
      std::swap(top_, other_);
    } else if (op == "keep") {
      kept_ = top_;
    } else if (op == "add") {
      top_ = append(op, Add{}, {top_.node, other_.node});
    } else if (op == "gate" || op == "hardgate") {
      top_ =
          append(op, ChannelGate{op == "gate" ? GateKind::sigmoid : GateKind::hard_sigmoid}, {other_.node, top_.node});
    } else if (op == "cat") {
      top_ = append(op, Concatenation{}, {top_.node, other_.node});
    } else if (op == "cat3") {
      top_ = append(op, Concatenation{}, {top_.node, other_.node, kept_.node});
    } else {
      throw std::runtime_error("unknown operation '" + word + "'");
    }
  }

  CaseGraph finish() {
    const bool flat = top_.shape.h == 1 && top_.shape.w == 1 && as<Linear>(result_.graph.nodes.back()) != nullptr;
    if (!flat) apply("flatten");
    apply("linear:k" + std::to_string(result_.graph.classes));
    append("loss", Loss{0.125F}, {top_.node});
    return std::move(result_);
  }

 private:
  struct Tensor {
    NodeId node = 0;
    Shape shape;
  };

  Tensor append(const std::string& op, const Attributes& attributes, std::vector<NodeId> inputs) {
    Graph& graph = result_.graph;
    const auto id = static_cast<NodeId>(graph.nodes.size());
    Node& node = graph.nodes.emplace_back(Node{op + std::to_string(id), attributes, std::move(inputs), {}});
    for (const ParameterSlot& slot : contract_of(attributes).parameters)
      node.parameters.push_back({node.name + '.' + slot.name, slot.kind, slot.shape, {}});
    return {id, infer_shapes(graph, result_.input.h, result_.input.w).back()};
  }

  CaseGraph result_;
  Tensor top_, other_, kept_;
};

/// To the nearest number of 8 significant bits, ties away from zero.
double round_to_bf16(double value) {
  const auto narrow = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  bits = (bits + 0x8000U) & 0xFFFF0000U;
  float rounded;
  std::memcpy(&rounded, &bits, sizeof rounded);
  return rounded;
}

/// k c 1 1: one factor a row.
reference::Values make_weights(const std::string& name, const std::vector<Index>& shape) {
  reference::Values weights(static_cast<std::size_t>(shape[0] * shape[1]), 0.0);
  for (Index k = 0; k < shape[0]; ++k) {
    const std::uint64_t bits = formula_bits(name, k);
    const double sign = (bits & 1) != 0 ? 1 : -1, size = 1.0 / static_cast<double>(1 << ((bits >> 1) % 3));
    weights[static_cast<std::size_t>(k * shape[1] + k % shape[1])] = sign * size;
  }
  return weights;
}

}  // namespace

CaseGraph parse_case(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  const std::map<char, Index> shape = numbers_of(word);
  CaseBuilder builder({shape.at('n'), shape.at('c'), shape.at('h'), shape.at('w')});
  while (words >> word) builder.apply(word);
  return builder.finish();
}

reference::Values case_parameters(const Plan& plan) {
  reference::Values block(static_cast<std::size_t>(plan.table.parameters.count), 0.0);
  for (const Parameter& row : plan.table.rows) {
    reference::Values values = row.name.starts_with("make") ? make_weights(row.name, row.shape)
                                                            : formula_parameter(row.name, row.kind, row.shape);
    for (double& value : values) value = round_to_bf16(value);
    std::copy(values.begin(), values.end(), block.begin() + row.range.begin);
  }
  return block;
}

}  // namespace convoy
