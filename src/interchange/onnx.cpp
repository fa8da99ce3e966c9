// SPDX-License-Identifier: Apache-2.0
#include "interchange/onnx.hpp"

#include <fmt/core.h>
#include <onnx.pb.h>

#include <algorithm>
#include <bit>
#include <set>

#include "core/errors.hpp"
#include "core/version.hpp"

namespace convoy {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");
constexpr int ir_version = 8, opset = 13, float_type = 1;
constexpr std::size_t largest_file = (std::size_t{1} << 31) - 1;

void set(onnx::Attribute& to, const OnnxAttribute& from) {
  to.set_name(from.name);
  if (const auto* whole = std::get_if<Index>(&from.value)) {
    to.set_type(onnx::Attribute::INT);
    to.set_i(*whole);
  } else if (const auto* real = std::get_if<float>(&from.value)) {
    to.set_type(onnx::Attribute::FLOAT);
    to.set_f(*real);
  } else {
    to.set_type(onnx::Attribute::INTS);
    for (const Index value : std::get<std::vector<Index>>(from.value)) to.add_ints(value);
  }
}

void describe(onnx::Value& to, const std::string& name, const std::vector<Index>& sides) {
  to.set_name(name);
  onnx::TensorType& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(float_type);
  type.mutable_shape()->add_dim()->set_dim_param("n");
  for (const Index side : sides) type.mutable_shape()->add_dim()->set_dim_value(side);
}

class Writer {
 public:
  explicit Writer(const OnnxSpec& spec) : spec_(spec), shapes_(infer_shapes(spec.graph, spec.height, spec.width)) {
    model_.set_ir_version(ir_version);
    model_.set_producer_name("convoy");
    model_.set_producer_version(version());
    model_.add_opset_import()->set_version(opset);
    for (const auto& [key, value] : spec.metadata) {
      onnx::Property& property = *model_.add_metadata_props();
      property.set_key(key);
      property.set_value(value);
    }
    graph_.set_name(spec.graph.model);
  }

  std::string file() {
    const Graph& graph = spec_.graph;
    const std::vector<bool> needed = nodes_of_logits(graph);
    outputs_.resize(graph.nodes.size());
    append_input(shapes_.front());
    for (std::size_t i = 1; i < graph.nodes.size(); ++i)
      if (needed[i]) append(graph.nodes[i], i);
    append_output();
    if (model_.ByteSizeLong() > largest_file) {
      fail(Exit::usage, "{} takes {:.1f} GB, and an ONNX file holds 2 GiB; export safetensors", graph.model,
           static_cast<double>(model_.ByteSizeLong()) / 1e9);
    }
    return model_.SerializeAsString();
  }

 private:
  std::string append_tensor(const std::string& name, const std::vector<Index>& extent, std::span<const float> values) {
    onnx::Tensor& tensor = *graph_.add_initializer();
    Index count = 1;
    for (const Index side : extent) {
      tensor.add_dims(side);
      count *= side;
    }
    require(count == static_cast<Index>(values.size()), "a tensor has another size than its shape");
    tensor.set_data_type(float_type);
    tensor.set_name(name);
    tensor.set_raw_data(values.data(), values.size_bytes());
    return name;
  }

  /// One tensor for all uses of a number.
  std::string constant(float value) {
    std::string name = fmt::format("constant/{}", value);
    if (constants_.insert(name).second) append_tensor(name, {}, {&value, 1});
    return name;
  }

  onnx::Node& append_node(const std::string& type, const std::string& name, const std::vector<std::string>& reads) {
    onnx::Node& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(name);
    node.add_output(name);
    for (const std::string& read : reads) node.add_input(read);
    return node;
  }

  void append_input(const Shape& shape) {
    std::string& value = outputs_.front();
    value = "images";
    describe(*graph_.add_input(), value, {shape.c, shape.h, shape.w});
    if (spec_.mean.empty()) return;
    const auto per_channel = [&](const char* name, const std::vector<double>& numbers) {
      const std::vector<float> values(numbers.begin(), numbers.end());
      return append_tensor(name, {1, shape.c, 1, 1}, values);
    };
    for (const auto& [type, name, numbers] :
         {std::tuple{"Sub", "mean", &spec_.mean}, std::tuple{"Div", "deviation", &spec_.deviation}}) {
      const std::string made = fmt::format("images/{}", type);
      append_node(type, made, {value, per_channel(name, *numbers)});
      value = made;
    }
  }

  void append(const Node& node, std::size_t at) {
    NodeInputs inputs{
        .node = node.name, .shapes = {}, .image = {0, spec_.height, spec_.width}, .classes = spec_.graph.classes};
    std::map<std::string, std::string> values;  // of the operation's own names
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto from = static_cast<std::size_t>(node.inputs[i]);
      inputs.shapes.push_back(shapes_[from]);
      values[i == 0 ? "x" : fmt::format("x{}", i)] = outputs_[from];
    }
    values["y"] = values.at("x");
    const auto operators = std::visit([&](const auto& operation) { return operation.onnx(inputs); }, node.attributes);
    for (const OnnxOperator& each : operators) append(each, node, values);
    outputs_[at] = values.at("y");
  }

  void append(const OnnxOperator& each, const Node& node, std::map<std::string, std::string>& values) {
    std::vector<std::string> reads;
    for (const OnnxValue& value : each.reads) reads.push_back(read(value, node, values));
    if (each.type == "Flatten" && flat_.contains(reads.front())) {  // of n c already
      values[each.writes] = reads.front();
      return;
    }
    const std::string made = each.writes == "y" ? node.name : fmt::format("{}/{}", node.name, each.writes);
    onnx::Node& written = append_node(each.type, made, reads);
    for (const OnnxAttribute& attribute : each.attributes) set(*written.add_attribute(), attribute);
    if (each.type == "Flatten" || each.type == "Gemm") flat_.insert(made);
    values[each.writes] = made;
  }

  std::string read(const OnnxValue& value, const Node& node, const std::map<std::string, std::string>& values) {
    if (const auto* number = std::get_if<float>(&value)) return constant(*number);
    const auto& name = std::get<std::string>(value);
    if (const auto found = values.find(name); found != values.end() && name != "y") return found->second;
    const std::string full = fmt::format("{}.{}", node.name, name);
    const auto parameter = std::find_if(node.parameters.begin(), node.parameters.end(),
                                        [&](const ParameterSpec& each) { return each.name == full; });
    const std::span<const float> numbers = spec_.values(full);
    return append_tensor(
        full, parameter != node.parameters.end() ? parameter->shape : std::vector<Index>{Index(numbers.size())},
        numbers);
  }

  void append_output() {
    // A name that says what it is, for whoever made it.
    const std::string made = outputs_.back(), name = "logits";
    for (onnx::Node& node : *graph_.mutable_node())
      if (node.output(0) == made) node.set_output(0, name);
    describe(*graph_.add_output(), name, {spec_.graph.classes});
  }

  const OnnxSpec& spec_;
  const std::vector<Shape> shapes_;
  onnx::Model model_;
  onnx::Graph& graph_ = *model_.mutable_graph();
  std::vector<std::string> outputs_;  ///< per node of the network: its value's name
  std::set<std::string> constants_, flat_;
};

}  // namespace

std::string onnx_model(const OnnxSpec& spec) { return Writer(spec).file(); }

}  // namespace convoy
