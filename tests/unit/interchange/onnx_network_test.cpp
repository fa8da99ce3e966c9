// SPDX-License-Identifier: Apache-2.0
// Networks from ONNX files: what Convoy exports comes back as it was, what other programs write is recognised, and what
// no network of Convoy can be is named.
#include "interchange/onnx_network.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "config/network_file.hpp"
#include "interchange/names.hpp"
#include "interchange/onnx.hpp"
#include "network/layers.hpp"
#include "onnx_bytes.hpp"
#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

using namespace onnx_bytes;

/// The graph as evaluation sees it: a file holds no dropout, and doesn't say which parameters never train. And a square
/// kernel has one side: a builder may say it twice, which is another text of the same operation.
Graph without_dropout(const GraphSpec& spec) {
  GraphSpec plain = spec;
  std::map<std::string, std::string> instead;
  plain.layers.clear();
  for (LayerSpec layer : layers_of(build_graph(spec))) {
    for (std::string& input : layer.inputs)
      if (const auto found = instead.find(input); found != instead.end()) input = found->second;
    const std::string side = layer.fields.count("kernel") > 0 ? layer.fields["kernel"] : "3";
    if (layer.fields.count("kernel_w") > 0 && layer.fields["kernel_w"] == side) {
      layer.fields.erase("kernel_w");
      layer.fields.erase("pad_w");
    }
    layer.fields.erase("fixed");
    if (layer.operation == Dropout::word) {
      instead[layer.name] = layer.inputs.front();
    } else {
      plain.layers.push_back(layer);
    }
  }
  plain.options.clear();
  return build_layers(plain);
}

class OnnxNetworkTest : public testing::Test {
 protected:
  OnnxNetwork read(const std::string& bytes) const {
    write_bytes(path_, bytes);
    return read_onnx_network(File(path_, File::Access::read));
  }
  /// As a network file, without its first lines.
  std::string layers(const std::string& parts) const {
    const std::string text = print_network_file({"n", read(network(parts)).spec.layers});
    return text.substr(text.find("]\n") + 2);
  }
  void expect_refused(const std::string& parts, const std::vector<std::string>& words) const {
    expect_error(Exit::data, words, [&] { read(network(parts)); });
  }
  std::string path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_ = folder_.path() + "/net.onnx";
};

TEST_F(OnnxNetworkTest, ExportsComeBackAsTheyWere) {
  for (const std::string& name : model_names()) {
    GraphSpec spec = with_usual_input({.model = name, .norm_momentum = 0.01F, .norm_epsilon = 0.001F}, 7, 0, 0);
    const Plan plan = make_plan(without_dropout(spec), {});
    if (plan.table.parameters.count > 12'000'000 && name != "inception_v3")
      continue;  // seconds of copying; their families have smaller ones
    std::vector<float> numbers(static_cast<std::size_t>(plan.table.parameters.count));
    std::iota(numbers.begin(), numbers.end(), 1.0F);
    std::map<std::string, std::span<const float>> parts;  // statistics too, of any values
    for (const StateEntry& entry : state_dict_of(plan))
      parts[entry.name] = std::span<const float>(numbers).subspan(static_cast<std::size_t>(entry.range.begin),
                                                                  static_cast<std::size_t>(entry.range.count));
    const auto values = [&](const std::string& tensor) { return parts.at(tensor); };
    const auto exported = [&](const Graph& graph) {
      return onnx_model({.graph = graph, .height = spec.image_size, .width = spec.image_size, .values = values});
    };
    const std::string bytes = exported(plan.graph);
    const OnnxNetwork found = read(bytes);
    EXPECT_EQ(found.spec.model, plan.graph.model);
    EXPECT_EQ(found.height, spec.image_size);
    const Plan back = make_plan(build_graph(found.spec), {});
    EXPECT_EQ(back.digest, plan.digest) << name;
    EXPECT_TRUE(exported(back.graph) == bytes) << name << " is another file when it is exported again";
    const TensorFile file(path());
    ASSERT_EQ(file.tensors().size(), plan.table.rows.size() + 2 * plan.table.norms.size()) << name;
    for (const StoredValues& tensor : {file.tensors().front(), file.tensors().back()})
      EXPECT_EQ(file.read(tensor).back(), values(tensor.name).back()) << name << " " << tensor.name;
  }
}

const std::string convolution = floats("c.weight", {2, 1, 1, 1}, {1, 2}) + node("Conv", {"image", "c.weight"}, "c");
const std::string flat = node("GlobalAveragePool", {"a"}, "m") + node("Flatten", {"m"}, "f") +
                         node("Gemm", {"f", "w", "b"}, "logits", attribute("transB", 1)) +
                         floats("w", {2, 2}, {1, 2, 3, 4}) + floats("b", {2}, {5, 6});
const std::string around = "m = global_average_pool\nf = flatten\nlogits = linear out=classes\n";

/// A convolution, these nodes from `c` to `a`, pooling and a linear layer: the lines of the nodes.
#define EXPECT_BETWEEN(nodes, lines)              \
  EXPECT_EQ(layers(convolution + (nodes) + flat), \
            "c = convolution kernel=1 out=2 pad=0\n" + std::string(lines) + around)

TEST_F(OnnxNetworkTest, ActivationsOfExporters) {
  EXPECT_BETWEEN(node("Relu", {"c"}, "a"), "a = activation\n");
  EXPECT_BETWEEN(node("LeakyRelu", {"c"}, "a"), "a = activation kind=leaky_relu slope=0.01\n");
  EXPECT_BETWEEN(node("HardSwish", {"c"}, "a"), "a = activation kind=hard_swish\n");
  EXPECT_BETWEEN(node("Gelu", {"c"}, "a"), "a = activation kind=gelu\n");
  EXPECT_BETWEEN(node("Sigmoid", {"c"}, "s") + node("Mul", {"s", "c"}, "a"), "a = activation kind=silu\n");
  EXPECT_BETWEEN(node("Clip", {"c"}, "a", attribute("min", 0.0F) + attribute("max", 6.0F)),
                 "a = activation kind=relu6\n");
  EXPECT_BETWEEN(floats("zero", {}, {0}) + floats("six", {}, {6}) + node("Clip", {"c", "zero", "six"}, "a"),
                 "a = activation kind=relu6\n");
  const std::string gelu = floats("root", {}, {1.41421354F}) + floats("one", {}, {1}) + floats("half", {}, {0.5F}) +
                           node("Div", {"c", "root"}, "d") + node("Erf", {"d"}, "e") + node("Add", {"e", "one"}, "t");
  EXPECT_BETWEEN(gelu + node("Mul", {"c", "t"}, "p") + node("Mul", {"p", "half"}, "a"), "a = activation kind=gelu\n");
  EXPECT_BETWEEN(gelu + node("Mul", {"half", "c"}, "p") + node("Mul", {"p", "t"}, "a"), "a = activation kind=gelu\n");
}

TEST_F(OnnxNetworkTest, WhatChangesNothingIsNoLayer) {
  EXPECT_BETWEEN(node("Identity", {"c"}, "j") + node("Concat", {"j"}, "i", attribute("axis", 1)) +
                     node("AveragePool", {"i"}, "p", attribute("kernel_shape", std::vector<Index>{1, 1})) +
                     node("Relu", {"p"}, "a"),
                 "a = activation\n");
}

TEST_F(OnnxNetworkTest, GatesAndSums) {
  const std::string gate = floats("g.weight", {2, 2, 1, 1}, {1, 2, 3, 4}) + numbers("axes", {-1, -2}) +
                           node("ReduceMean", {"c", "axes"}, "r") + node("Conv", {"r", "g.weight"}, "g");
  const std::string begin = "r = global_average_pool\ng = convolution kernel=1 out=2 pad=0\n";
  EXPECT_BETWEEN(gate + node("Sigmoid", {"g"}, "s") + node("Mul", {"s", "c"}, "a"),
                 begin + "a = channel_gate from=c,g\n");
  EXPECT_BETWEEN(gate + node("HardSigmoid", {"g"}, "s", attribute("alpha", 0.16666667F)) + node("Mul", {"c", "s"}, "a"),
                 begin + "a = channel_gate gate=hard_sigmoid from=c,g\n");
  EXPECT_BETWEEN(node("Relu", {"c"}, "r") + node("Add", {"c", "r"}, "a"), "r = activation\na = add from=c,r\n");
}

TEST_F(OnnxNetworkTest, MatricesInEitherOrder) {
  const std::string begin = node("Reshape", {"image", "shape"}, "f") + numbers("shape", {-1, 16}) +
                            floats("v.weight", {16, 2}, std::vector<float>(32, 1));
  const std::string product = node("MatMul", {"f", "v.weight"}, "p") + floats("b", {2}, {5, 6});
  EXPECT_EQ(layers(begin + product + node("Add", {"b", "p"}, "logits")), "f = flatten\nv = linear out=classes\n");
  std::vector<float> counted(32);
  std::iota(counted.begin(), counted.end(), 0.0F);
  const OnnxNetwork found = read(network(node("Flatten", {"image"}, "f") + floats("v.weight", {16, 2}, counted) +
                                         node("Gemm", {"f", "v.weight"}, "g") + node("Softmax", {"g"}, "logits")));
  EXPECT_EQ(found.spec.classes, 2);
  const TensorFile file(path());
  const StoredValues* weight = file.find("v.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->extent, (std::vector<Index>{2, 16}));
  EXPECT_EQ(file.read(*weight)[1], 2);   // row 0, column 1: of column 0 in the file
  EXPECT_EQ(file.read(*weight)[16], 1);  // row 1, column 0
}

TEST_F(OnnxNetworkTest, AShapeThatIsComputedMayFlatten) {
  const std::string shape = node("Shape", {"image"}, "s") + node("Gather", {"s", "zero"}, "n") + numbers("zero", {0}) +
                            node("Unsqueeze", {"n", "zero"}, "u") + numbers("rest", {-1});
  const std::string end = floats("v.weight", {2, 16}, std::vector<float>(32, 1)) +
                          node("Gemm", {"f", "v.weight"}, "logits", attribute("transB", 1));
  EXPECT_EQ(layers(shape + node("Concat", {"u", "rest"}, "to", attribute("axis", 0)) +
                   node("Reshape", {"image", "to"}, "f") + end),
            "f = flatten\nv = linear bias=false out=classes\n");
  expect_refused(shape + node("Concat", {"u", "rest", "u", "u"}, "to", attribute("axis", 0)) +
                     node("Reshape", {"image", "to"}, "f") + end,
                 {"node 'f' (Reshape) makes another shape than images x values"});
}

TEST_F(OnnxNetworkTest, WhatConvoyHasNotIsNamed) {
  const auto conv = [&](const std::string& attributes) {
    return floats("k", {2, 1, 3, 3}, std::vector<float>(18)) + node("Conv", {"image", "k"}, "logits", attributes);
  };
  using Sides = std::vector<Index>;
  expect_refused(
      conv(attribute("dilations", Sides{2, 2})),
      {"net.onnx': node 'logits' (Conv) has dilations of 2 x 2, which Convoy doesn't have; change the network"});
  expect_refused(conv(attribute("pads", Sides{0, 0, 1, 1})), {"'logits' (Conv) has padding of 0, 0, 1, 1"});
  expect_refused(conv(attribute("strides", Sides{1, 2})), {"'logits' (Conv) has strides of 1 x 2"});
  expect_refused(conv(attribute("auto_pad", "SAME_UPPER")), {"auto_pad SAME_UPPER", "numbers in pads"});
  expect_refused(conv(attribute("strides", "two")), {"attribute 'strides' of another type"});
  expect_refused(node("Resize", {"image"}, "r") + node("Relu", {"r"}, "logits"), {"node 'r' is an operator Resize"});
  expect_refused(node("Relu", {"elsewhere"}, "logits"), {"nothing makes the value 'elsewhere'"});
  expect_refused(node("Relu", {"a"}, "logits") + node("Relu", {"image"}, "a"), {"comes after what reads it"});
  expect_refused(node("Relu", {"image"}, "logits"), {"no convolution and no linear layer"});
  expect_refused(value(11, "more", {1, 4, 4}), {"has 2 inputs"});
  expect_refused(node("MaxPool", {"image"}, "logits", attribute("kernel_shape", Sides{2, 3})), {"not a square"});
}

TEST_F(OnnxNetworkTest, TheOpsetMustBeKnown) {
  const std::string remedy = "Convoy reads those of opset 7 to 28; export it again with such an opset";
  for (const Index version : {7, 11, 13, 18, 28})
    EXPECT_EQ(read(network(convolution + node("Relu", {"c"}, "a") + flat, opset(version))).spec.classes, 2) << version;
  EXPECT_EQ(read(network(convolution + node("Relu", {"c"}, "a") + flat, opset(3, "com.other") + opset(17, "ai.onnx")))
                .spec.classes,
            2);
  for (const Index version : {1, 6, 29}) {
    const std::string bytes = network(convolution + node("Relu", {"c"}, "a") + flat, opset(version));
    expect_error(Exit::data, {"net.onnx': its operators are those of ONNX's opset " + std::to_string(version), remedy},
                 [&] { read(bytes); });
  }
  for (const std::string& opsets : {std::string(), opset(1, "com.other")})
    expect_error(Exit::data, {"doesn't say of which version its operators are", remedy},
                 [&] { read(network(convolution + node("Relu", {"c"}, "a") + flat, opsets)); });
  expect_error(Exit::data, {"names two versions of ONNX's operators"},
               [&] { read(network(convolution + flat, opset(11) + opset(13))); });
  expect_refused(convolution + node("Relu", {"c"}, "a", part(7, "com.microsoft")) + flat,
                 {"node 'a' is an operator Relu of the domain 'com.microsoft'", "before another program optimises"});
}

TEST_F(OnnxNetworkTest, OfSeveralOutputsNoneIsTakenInSilence) {
  const std::string body = convolution + node("Relu", {"c"}, "a") + flat;
  const auto outputs = [&](const std::vector<std::string>& names, const std::string& more = {}) {
    std::string parts = body + more + value(11, "image", {1, 4, 4});
    for (const std::string& name : names) parts += value(12, name, {2});
    return model(parts);
  };
  // The one that is called so, wherever it stands; and what is the same without its Softmax.
  for (const std::vector<std::string>& names : {std::vector<std::string>{"c", "logits"}, {"logits", "c"}})
    EXPECT_EQ(read(outputs(names)).spec.layers.back().name, "logits");
  EXPECT_EQ(read(outputs({"p", "q"}, node("Softmax", {"logits"}, "p") + node("LogSoftmax", {"logits"}, "q")))
                .spec.layers.back()
                .name,
            "logits");
  expect_error(Exit::data, {"the graph has 2 outputs (f, c)", "export it with one output, or call that one 'logits'"},
               [&] {
                 read(outputs({"f", "c"}));
               });
  expect_error(Exit::data, {"the graph has 9 outputs (c, f, m, a, c, c, c, c ...)"}, [&] {
    read(outputs({"c", "f", "m", "a", "c", "c", "c", "c", "c"}));
  });
  expect_error(Exit::data, {"has no output"}, [&] { read(outputs({})); });
}

TEST_F(OnnxNetworkTest, WhatEndsTheLogitsIsOverClasses) {
  const std::string body = convolution + node("Relu", {"c"}, "a");
  // `flat` makes `logits` itself: here its operators are read by others.
  std::string inner = flat;
  for (auto at = inner.find("logits"); at != std::string::npos; at = inner.find("logits"))
    inner.replace(at, 6, "linear");
  for (const std::string& axis : {std::string(), attribute("axis", 1), attribute("axis", -1)})
    EXPECT_EQ(read(network(body + inner + node("Softmax", {"linear"}, "logits", axis))).spec.layers.back().name,
              "linear");
  expect_refused(body + inner + node("Softmax", {"linear"}, "logits", attribute("axis", 0)),
                 {"node 'logits' is an operator Softmax"});
}

TEST_F(OnnxNetworkTest, ATrainingModeIsRefused) {
  const std::string ones = floats("v", {2}, {1, 1});
  const auto norm = [&](const std::string& more) {
    return convolution + ones +
           part(1, part(1, "c") + part(1, "v") + part(1, "v") + part(1, "v") + part(1, "v") + part(2, "a") +
                       part(3, "bn") + part(4, "BatchNormalization") + more) +
           flat;
  };
  const std::string remedy = "is in training mode; export the network in evaluation mode";
  EXPECT_EQ(read(network(norm(attribute("training_mode", 0)))).spec.layers.at(1).operation, "batch_norm");
  EXPECT_EQ(read(network(norm(part(2, "")))).spec.layers.at(1).operation,
            "batch_norm");  // outputs that nobody asks for
  expect_refused(norm(attribute("training_mode", 1)), {"node 'bn' (BatchNormalization) " + remedy});
  expect_refused(norm(part(2, "mean") + part(2, "var")), {"node 'bn' (BatchNormalization) " + remedy});
  expect_refused(norm(attribute("spatial", 0)), {"node 'bn' (BatchNormalization) has statistics of every pixel"});
  // A constant bool, in the two ways of writing it.
  const auto drop = [&](const std::string& value) {
    return convolution + floats("half", {}, {0.5F}) + part(5, whole(2, 9) + part(8, "mode") + value) +
           node("Dropout", {"c", "half", "mode"}, "a") + flat;
  };
  for (const std::string& no : {whole(5, 0), part(9, std::string(1, '\0'))})
    EXPECT_EQ(layers(drop(no)), "c = convolution kernel=1 out=2 pad=0\na = dropout\n" + around);
  for (const std::string& yes : {whole(5, 1), part(9, "\1")})
    expect_refused(drop(yes), {"node 'a' (Dropout) " + remedy});
}

TEST_F(OnnxNetworkTest, SidesThatNoWeightHas) {
  const auto of = [](const std::vector<Index>& extent) {
    return part(5, dims(extent) + whole(2, 1) + part(8, "k")) + node("Conv", {"image", "k"}, "logits");
  };
  const Index huge = Index{1} << 62;
  expect_refused(of({huge, 1, 1, 1}), {"node 'logits' (Conv) has a weight with a side of 4611686018427387904"});
  expect_refused(of({2, huge, 1, 1}), {"has a weight with a side of 4611686018427387904"});
  expect_refused(of({2, -1, 1, 1}), {"has a weight with a side of -1"});
  expect_refused(of({0, 1, 1, 1}), {"has a weight with a side of 0"});
  expect_refused(of({2, 1, huge, 1}), {"has a weight with a side of 4611686018427387904"});
  // A product that fits no weight: its values aren't there.
  expect_refused(of({2147483647, 2147483647, 1, 1}), {"weight of node 'logits' (Conv) is no constant of the file"});
  expect_refused(part(5, dims({huge, 2}) + whole(2, 1) + part(8, "v")) + node("Flatten", {"image"}, "f") +
                     node("Gemm", {"f", "v"}, "logits"),
                 {"node 'logits' (Gemm) has a weight with a side of"});
}

/// Steps that grow with the square of the number of nodes would take minutes here.
TEST_F(OnnxNetworkTest, LargeGraphsAreReadOrRefused) {
  const auto chain = [&](int count) {
    std::string bytes = convolution;
    for (int i = 0; i < count; ++i) {
      const std::string from = i == 0 ? "c" : "c" + std::to_string(i);
      const std::string to = i + 1 == count ? "a" : "c" + std::to_string(i + 1);
      bytes += part(1, part(1, from) + part(2, to) + part(3, "same") + part(4, "Relu"));
    }
    return network(bytes + flat);
  };
  const OnnxNetwork found = read(chain(19990));
  EXPECT_EQ(found.spec.layers.at(1).name, "same");
  EXPECT_EQ(found.spec.layers.at(19990).name, "same_19990");
  expect_error(Exit::data, {"more than 20000 layers"}, [&] { read(chain(50000)); });
}

TEST_F(OnnxNetworkTest, DamagedFilesAreErrors) {
  const std::string bytes = network(convolution + flat);
  expect_error(Exit::data, {"no whole ONNX file"}, [&] { read(bytes.substr(0, bytes.size() - 20)); });
  expect_refused(part(5, dims({2, 1, 1, 1}) + whole(2, 1) + part(8, "c.weight") + part(9, "12345")) +
                     node("Conv", {"image", "c.weight"}, "logits"),
                 {"tensor 'c.weight'", "larger than its file"});
  // Bits of half numbers in int32_data, which would be read as 14336; and strides that would be 1.
  expect_refused(part(5, whole(2, 10) + part(8, "half") + whole(5, 0x3800)) + node("Mul", {"image", "half"}, "logits"),
                 {"stores 'half' as integers"});
  expect_refused(floats("k", {2, 1, 3, 3}, std::vector<float>(18)) +
                     node("Conv", {"image", "k"}, "logits", part(5, part(1, "strides") + whole(8, 2) + whole(8, 2))),
                 {"'strides' without a type"});
  expect_refused(part(5, dims({Index{1} << 62, 8}) + whole(2, 1) + part(8, "c.weight") + part(9, "12345678")),
                 {"larger than its file"});
}

/// Texts that are empty are left out.
std::string outside(const std::string& location, const std::string& length, const std::string& offset = "4") {
  const auto entry = [](const std::string& key, const std::string& text) {
    return text.empty() ? "" : part(13, part(1, key) + part(2, text));
  };
  return part(5, dims({2, 16}) + whole(2, 1) + part(8, "v.weight") + entry("location", location) +
                     entry("offset", offset) + entry("length", length) + whole(14, 1)) +
         node("Flatten", {"image"}, "f") + node("Gemm", {"f", "v.weight"}, "logits", attribute("transB", 1));
}

TEST_F(OnnxNetworkTest, WeightsInAFileBesideTheGraph) {
  std::vector<float> counted(33);
  std::iota(counted.begin(), counted.end(), 0.0F);
  const std::string beside = path() + ".data";
  write_bytes(beside, raw(counted));
  read(network(outside("net.onnx.data", "128")));
  const TensorFile file(path());
  EXPECT_EQ(file.read(file.tensors().front())[31], 32);
  read(network(outside("net.onnx.data", "")));
  const TensorFile to_end(path());
  EXPECT_EQ(to_end.read(to_end.tensors().front())[31], 32);
  read(network(outside("net.onnx.data", "", "")));
  const TensorFile from_begin(path());
  EXPECT_EQ(from_begin.read(from_begin.tensors().front())[31], 31);
  write_bytes(path(), network(outside("net.onnx.data", "", "8")));
  expect_error(Exit::data, {"ends before tensor 'v.weight'"}, [&] { const TensorFile cut(path()); });
  for (const char* location : {"../net.onnx.data", "/etc/passwd", "", ".."})
    expect_refused(outside(location, "128"), {"isn't beside this one", "external_data=False"});
  write_bytes(path(), network(outside("net.onnx.data", "128")));
  write_bytes(beside, "short");
  expect_error(Exit::data, {"ends before tensor 'v.weight'"}, [&] { const TensorFile again(path()); });
  write_bytes(path(), network(outside("net.onnx.data", "18446744073709551615")));
  expect_error(Exit::data, {"v.weight"}, [&] { const TensorFile again(path()); });
}

}  // namespace
}  // namespace convoy
