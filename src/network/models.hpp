// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "network/graph.hpp"

namespace convoy {

constexpr float usual_norm_epsilon = 1e-5F;

/// Numbers of batch norms.
struct Norms {
  float epsilon = usual_norm_epsilon;  ///< added to the variance
  float momentum = 0.1F;               ///< share of the new batch in the running statistics
};

/// A node of a network from a file (--model-file).
struct LayerSpec {
  std::string name;
  std::string operation;                      ///< its word
  std::map<std::string, std::string> fields;  ///< `out` -> `64`, or `classes`; `start`: how its weight starts
  std::vector<std::string> inputs;            ///< names of earlier ones; `input`: the images
  std::string origin = {};                    ///< `net.cfg:12`, for messages; empty: not known
};

/// What a user may choose. Empty text: the model's default.
struct GraphSpec {
  std::string model = "resnet50";  ///< `mlp`, `lenet`, `resnet20` (6n+2 CIFAR form), `resnet50`, ...; see model_help()
  Index classes = 1000;
  Index channels = 3;
  Index image_size = 224;  ///< used by linear layers only (mlp, lenet)
  /// Options that only some families have, by their names (family_options()): `resnet-version` -> `v2`. What isn't here
  /// is the model's default.
  std::map<std::string, std::string> options = {};
  std::string activation = {};  ///< one of activation_names()
  float leaky_slope = 0.1F;
  std::optional<float> norm_momentum = {}, norm_epsilon = {};  ///< not set: the model's own (usual_norms)
  std::string initialiser = {};   ///< of weights: `he`, `xavier`, `normal`, `truncated_normal`, `uniform`, `orthogonal`
  float initialiser_std = 0.01F;  ///< of normal, truncated_normal; bound of uniform
  float initialiser_gain = 1;     ///< of orthogonal
  float label_smoothing = 0;
  std::vector<LayerSpec> layers = {};  ///< of a file; then `model` is what the file calls the network

  /// The option's value; empty where it isn't set.
  std::string option(const std::string& name) const;
};

/// An option that only some families have.
struct ModelOption {
  /// word: one of `words`. share: a number of at least 0 and below 1. factor: a number above 0. flag: `true` where it
  /// is set. counts: whole numbers above 0, `32,16`.
  enum class Form : std::uint8_t { word, share, factor, flag, counts };
  std::string name;  ///< `resnet-version`, as on the command line
  Form form = Form::word;
  std::vector<std::string> words = {};
  std::string otherwise = {};  ///< what help calls the default, where it is a value
  std::string help = {};
  std::string lacks = {};  ///< what a family without it has not: `version`. Empty: others ignore the option
  std::vector<std::string> aliases = {};
};

/// A network and the options that its name stands for in another program.
struct NamedNetwork {
  std::string model;
  std::map<std::string, std::string> options = {};  ///< as in GraphSpec
};

/// The network that a user means who writes `name`: also in capitals, with hyphens (`ResNet-50`) or as MXNet's and
/// other programs call it (`resnext50`, `resnet50_v2`). `depth`: digits that are given apart from the name; may be
/// empty. Nothing: no family knows it.
std::optional<NamedNetwork> find_network(const std::string& name, const std::string& depth = {});
/// Throws Error(usage) for an unknown model (naming the nearest) or an option that the model doesn't have.
Graph build_graph(const GraphSpec& spec);
/// Options in the spec that its network doesn't have and whose value says no more than that (`dropout` 0).
std::vector<std::string> idle_options(const GraphSpec& spec);
/// Names that error texts may suggest: the common ones, not every depth of a family.
std::vector<std::string> model_names();
/// Top-1 in percent that torchvision's first weights of the model reach on ImageNet's val split; 0: not known.
double published_top1(const std::string& model);
/// Text of --help: the families, which depths they have and what an ambiguous depth means. Lines without line end.
std::string model_help();
/// Options of all families, each once.
std::vector<ModelOption> family_options();
/// Of the network of this name in the program that its parameters' names are from, torchvision or timm: with another
/// epsilon its weights give other logits.
Norms usual_norms(const std::string& model);
/// Whether that network takes values from -1 to 1, in place of those that ImageNet's mean and deviation give.
bool takes_centred_input(const std::string& model);
/// What the batch norms of the network have: what the spec says, else usual_norms. A network from a file has 1e-5 and
/// 0.1 where neither the file nor the spec says more.
Norms norms_of(const GraphSpec& spec);
/// The model for the input that it is usually given (ImageNet, CIFAR-10, MNIST), where classes, channels or image size
/// are 0; else for those.
GraphSpec with_usual_input(GraphSpec model, Index classes, Index channels, Index image_size);

}  // namespace convoy
