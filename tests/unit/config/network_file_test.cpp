// SPDX-License-Identifier: Apache-2.0
#include "config/network_file.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "config/config.hpp"
#include "config/parse.hpp"
#include "config/print.hpp"
#include "network/layers.hpp"
#include "network/plan.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {

constexpr const char* small = R"(# three blocks
name = small
[network]
conv1 = convolution out=8
bn1 = batch_norm
act = activation
layer1 = basic width=8 repeat=2
layer2.0 = down width=16
avgpool = global_average_pool
flatten = flatten
fc = linear out=classes

[block basic]
conv1 = convolution out=width
bn1 = batch_norm
act1 = activation kind=silu
conv2 = convolution out=width
bn2 = batch_norm start=zeros
add = add from=bn2,in
act2 = activation

[block down]
conv1 = convolution out=2*width stride=2
join = concatenation from=conv1,short
short.x = dropout
)";

/// The same with the lines of `down` in order.
std::string in_order() {
  std::string text = small;
  const std::string wrong = "join = concatenation from=conv1,short\nshort.x = dropout\n";
  return text.replace(
      text.find(wrong), wrong.size(),
      "short = convolution from=in out=4 kernel=1 pad=0 stride=2\njoin = concatenation from=conv1,short\n");
}

GraphSpec spec_of(const NetworkFile& network, Index classes = 10, Index channels = 3, Index size = 32) {
  GraphSpec spec;
  spec.model = network.name;
  spec.layers = network.layers;
  spec.classes = classes;
  spec.channels = channels;
  spec.image_size = size;
  return spec;
}

TEST(NetworkFile, BlocksAreWrittenOut) {
  const NetworkFile network = read_network_file(in_order(), "net.cfg");
  EXPECT_EQ(network.name, "small");
  const Graph graph = build_graph(spec_of(network));
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"input",
                                             "conv1",
                                             "bn1",
                                             "act",
                                             "layer1.0.conv1",
                                             "layer1.0.bn1",
                                             "layer1.0.act1",
                                             "layer1.0.conv2",
                                             "layer1.0.bn2",
                                             "layer1.0.add",
                                             "layer1.0.act2",
                                             "layer1.1.conv1",
                                             "layer1.1.bn1",
                                             "layer1.1.act1",
                                             "layer1.1.conv2",
                                             "layer1.1.bn2",
                                             "layer1.1.add",
                                             "layer1.1.act2",
                                             "layer2.0.conv1",
                                             "layer2.0.short",
                                             "layer2.0.join",
                                             "avgpool",
                                             "flatten",
                                             "fc",
                                             "loss"}));
  const auto text = [&](std::size_t node) { return describe(graph.nodes[node].attributes); };
  EXPECT_EQ(text(18), "convolution 8 -> 32, 3x3, stride 2, pad 1, groups 1");
  EXPECT_EQ(text(23), "linear 36 -> 10, bias");
  EXPECT_EQ(text(6), "silu");
  EXPECT_EQ(graph.nodes[9].inputs, (std::vector<NodeId>{8, 3}));
  EXPECT_EQ(graph.nodes[8].parameters[0].initialiser.fill, Initialiser::Fill::zeros);
  EXPECT_EQ(graph.nodes[5].parameters[0].initialiser.fill, Initialiser::Fill::ones);
  make_plan(graph, {});
}

/// Every network that there is, as a file and as a line of a configuration.
TEST(NetworkFile, EveryNetworkComesBackAsItWas) {
  for (const std::string& model : model_names()) {
    GraphSpec plain;
    plain.model = model;
    plain = with_usual_input(plain, 0, 0, 0);
    const Graph graph = build_graph(plain);
    const NetworkFile shown{graph.model, layers_of(graph)};
    const NetworkFile read = read_network_file(print_network_file(shown), "shown.cfg");
    GraphSpec spec = spec_of(read, plain.classes, plain.channels, plain.image_size);
    spec.layers = layers_of_line(to_line(read.layers, Origins::dropped));
    const Graph again = build_graph(spec);
    EXPECT_EQ(again.model, graph.model);
    EXPECT_EQ(make_plan(again, {}).digest, make_plan(graph, {}).digest) << model;
    ASSERT_EQ(again.nodes.size(), graph.nodes.size()) << model;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (std::size_t k = 0; k < graph.nodes[i].parameters.size(); ++k) {
        const Initialiser &a = graph.nodes[i].parameters[k].initialiser, &b = again.nodes[i].parameters[k].initialiser;
        ASSERT_EQ(a.fill, b.fill) << model << ' ' << graph.nodes[i].parameters[k].name;
        ASSERT_EQ(a.value, b.value) << model << ' ' << graph.nodes[i].parameters[k].name;
      }
  }
}

TEST(NetworkFile, ResnetWrittenWithBlocksIsTheSameNetwork) {
  const NetworkFile network = read_network_file(R"(
name = resnet50 v1.5
[network]
conv1 = convolution out=64 kernel=7 stride=2 pad=3
bn1 = batch_norm
act = activation
maxpool = pool kernel=3 stride=2 pad=1
layer1.0 = down width=64 stride=1
layer1 = same width=64 first=1 repeat=2
layer2.0 = down width=128 stride=2
layer2 = same width=128 first=1 repeat=3
layer3.0 = down width=256 stride=2
layer3 = same width=256 first=1 repeat=5
layer4.0 = down width=512 stride=2
layer4 = same width=512 first=1 repeat=2
avgpool = global_average_pool
flatten = flatten
fc = linear out=classes
[block branch]
conv1 = convolution out=width kernel=1 pad=0
bn1 = batch_norm
act1 = activation
conv2 = convolution out=width stride=stride
bn2 = batch_norm
act2 = activation
conv3 = convolution out=4*width kernel=1 pad=0
bn3 = batch_norm
[block same]
conv1 = convolution out=width kernel=1 pad=0
bn1 = batch_norm
act1 = activation
conv2 = convolution out=width
bn2 = batch_norm
act2 = activation
conv3 = convolution out=4*width kernel=1 pad=0
bn3 = batch_norm
add = add from=bn3,in
act3 = activation
[block down]
conv1 = convolution out=width kernel=1 pad=0
bn1 = batch_norm
act1 = activation
conv2 = convolution out=width stride=stride
bn2 = batch_norm
act2 = activation
conv3 = convolution out=4*width kernel=1 pad=0
bn3 = batch_norm
downsample.0 = convolution from=in out=4*width kernel=1 pad=0 stride=stride
downsample.1 = batch_norm
add = add from=bn3,downsample.1
act3 = activation
)",
                                                "resnet50.cfg");
  GraphSpec plain;
  plain.model = "resnet50";
  EXPECT_EQ(make_plan(build_graph(spec_of(network, 1000, 3, 224)), {}).digest,
            make_plan(build_graph(plain), {}).digest);
}

void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
  expect_error(Exit::usage, parts, [&] { build_graph(spec_of(read_network_file(text, "net.cfg"))); });
}

TEST(NetworkFile, ErrorsNameFileAndLine) {
  const std::string head = "name = a\n[network]\n";
  expect_refused(small, {"net.cfg:24: ", "'join' reads 'short', but no earlier line has this name"});
  expect_refused(head + "conv1 = convolutoin out=8\n", {"net.cfg:3: ", "did you mean 'convolution'?"});
  expect_refused(head + "conv1 = convolution width=8\n",
                 {"net.cfg:3: ", "has 'width', which convolution doesn't have; it has out, kernel"});
  expect_refused(head + "conv1 = convolution out=x\n", {"net.cfg:3: ", "has out = 'x'"});
  expect_refused(head + "conv1 = convolution out=8 pad\n", {"net.cfg:3: ", "has 'pad', which is no key=value"});
  expect_refused(head + "conv1 = convolution out=8\n\nconv1 = convolution out=8\n",
                 {"net.cfg:5: ", "the name of an earlier layer"});
  expect_refused(head + "conv1 = convolution out=8 from=x\n", {"net.cfg:3: ", "reads 'x'"});
  expect_refused(
      head +
          "a = convolution out=8\nb = convolution out=8 from=input\nc = global_average_pool\nfc = linear out=classes\n",
      {"net.cfg:3: ", "is read by no later layer"});
  expect_refused(head + "conv1 = convolution out=8 groups=2\nfc = linear out=classes\n",
                 {"net.cfg:3: ", "is impossible"});
  expect_refused(head + "pool = pool kernel=64\nfc = linear out=classes\n", {"net.cfg:3: ", "too small"});
  expect_refused(head + "conv1 = convolution out=8\nadd = add\n", {"net.cfg:4: ", "reads 1 layer"});
  expect_refused(head + "fc = linear out=7\n", {"net.cfg:3: ", "out=classes"});
  expect_refused(head + "act = activation kind=rule\n", {"net.cfg:3: ", "unknown activation 'rule'"});
  expect_refused(head + "act = activation start=zeros\n", {"net.cfg:3: ", "has a 'start'"});
  expect_refused(head + "fc = linear out=classes start=normal:nan\n", {"net.cfg:3: ", "the number lies above 0"});
  expect_refused(head + "fc = linear out=classes start=uniform:-1\n", {"net.cfg:3: ", "the number lies above 0"});
  expect_refused(head + "fc = linear out=classes start=zeros:5\n", {"net.cfg:3: ", "zeros takes no number"});
  expect_refused(head + "fc = linear out=2*\n", {"net.cfg:3: ", "nothing behind the last '*'"});
  expect_refused(head + "fc = linear out=9999999999*9999999999\n", {"net.cfg:3: ", "too large"});
  expect_refused(head + "x = twice width=2\nfc = linear out=classes\n[block twice]\na = dropout\n",
                 {"net.cfg:3: ", "gives 'width', which the block 'twice' doesn't use"});
  expect_refused(head + "x = self\n[block self]\nx = self\n", {"net.cfg:5: ", "does 'self' contain itself?"});
  expect_refused("name = a\nconv1 = convolution\n", {"net.cfg:2: ", "unknown key 'conv1' before the first section"});
  expect_refused("name = a\n[layers]\n", {"net.cfg:2: ", "unknown section [layers]"});
  expect_refused("name = a\n", {"'net.cfg' describes no network"});
  expect_refused("[network]\nfc = linear out=classes\n", {"'net.cfg' doesn't name its network"});
}

/// The configuration of a run holds the layers and needs no file; the command line may name another network.
TEST(NetworkFile, AConfigurationHoldsTheLayers) {
  int reads = 0;
  const ReadText read = [&](const std::string& path) {
    ++reads;
    return path == "net.cfg" ? in_order() : std::string("model-file = net.cfg\nepochs = 2\n");
  };
  const TrainConfig config = parse_train({"--synthetic", "--model-file", "net.cfg"}, read);
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(config.model.model, "small");
  const std::string text = to_ini(config);
  EXPECT_EQ(text.find("net.cfg"), std::string::npos) << "neither path nor lines";
  const TrainConfig again = parse_ini(text);
  EXPECT_EQ(to_ini(again), text);
  EXPECT_EQ(to_line(again.model.layers, Origins::dropped), to_line(config.model.layers, Origins::dropped));
  EXPECT_EQ(parse_train({"--synthetic", "--config", "all.cfg"}, read).model.layers.size(), config.model.layers.size());
  const TrainConfig other = parse_train({"--synthetic", "--config", "all.cfg", "--model", "resnet20"}, read);
  EXPECT_TRUE(other.model.layers.empty());
  EXPECT_EQ(other.model.model, "resnet20");
  expect_error(Exit::usage, {"both give the network"}, [&] {
    parse_train({"--synthetic", "--model", "resnet20", "--model-file", "net.cfg"}, read);
  });
  expect_error(Exit::usage, {"'net.cfg' describes a network", "give it as --model-file"}, [&] {
    parse_train({"--synthetic", "--config", "net.cfg"}, read);
  });
  expect_error(Exit::usage, {"has no --stem"}, [&] {
    parse_train({"--synthetic", "--stem", "small", "--model-file", "net.cfg"}, read);
  });
}

/// A run directory must be able to hold the layers.
TEST(NetworkFile, ALargeNetworkIsRefusedBeforeItTrains) {
  const auto of = [](int layers) {
    std::string text = "name = deep\n[network]\nconv = convolution out=4\n";
    for (int i = 0; i < layers; ++i) text += fmt::format("activation_of_some_layer_{} = activation\n", i);
    return text + "pool = global_average_pool\nflatten = flatten\nfc = linear out=classes\n";
  };
  for (const int layers : {100, 12000}) {
    const ReadText read = [&](const std::string&) { return of(layers); };
    if (layers == 100)
      EXPECT_EQ(parse_train({"--synthetic", "--model-file", "deep.net"}, read).model.layers.size(), 104U);
    else
      expect_error(Exit::usage, {"the 12004 layers of 'deep.net' take", "a configuration holds 524288"}, [&] {
        parse_train({"--synthetic", "--model-file", "deep.net"}, read);
      });
  }
}

}  // namespace
}  // namespace convoy
