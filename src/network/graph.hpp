// SPDX-License-Identifier: Apache-2.0
// A network as its builder wrote it: nodes in topological order, torchvision names. Knows no backend; image sizes enter
// only where a linear layer's weight depends on one (GraphSpec).
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"

namespace convoy {

using NodeId = std::int32_t;

/// How a tensor starts. he_*, xavier: Kaiming / Glorot with the tensor's fan; `value`: standard deviation or bound.
struct Initialiser {
  enum class Fill : std::uint8_t {
    zeros,
    ones,
    he_fan_out_normal,
    he_fan_in_normal,
    he_fan_in_uniform,
    xavier_uniform,
    xavier_normal,
    normal,
    truncated_normal,  ///< truncated at two standard deviations, not rescaled
    uniform,
  };
  Fill fill = Fill::zeros;
  float value = 0;
};

/// What a parameter is to the optimiser: decay and rate multipliers go by it. filter: convolution and linear weights.
enum class Kind : std::uint8_t { filter, bias, norm_scale, norm_shift };

struct ParameterSpec {
  std::string name;  ///< `layer1.0.conv1.weight`
  Kind kind = Kind::filter;
  std::vector<Index> shape;  ///< convolution k c/groups r s, linear k c, others k
  Initialiser initialiser;

  Index count() const {
    Index values = 1;
    for (const Index side : shape) values *= side;
    return values;
  }
};

enum class Curve : std::uint8_t { relu, leaky_relu, tanh };

// Attributes, one struct an operation. Tensors are n c h w; linear and loss see n c.
struct Input {
  Index channels = 0;
};
/// y[k,p,q] = sum w[k,c,r,s] x[c, p*stride - pad + r, q*stride - pad + s] (+ bias[k]). Parameters: weight (, bias).
struct Convolution {
  Index in = 0, out = 0;
  int kernel = 3, stride = 1, pad = 1, groups = 1;
  bool bias = false;
};
/// y = scale * (x - mean) / sqrt(var + epsilon) + shift. Training: biased batch variance; running statistics take
/// (1 - momentum) * old + momentum * new, the variance unbiased. Parameters: weight (scale), bias (shift).
struct BatchNorm {
  Index channels = 0;
  float momentum = 0.1F, epsilon = 1e-5F;
};
struct Activation {
  Curve curve = Curve::relu;
  float slope = 0;  ///< leaky_relu: y = x > 0 ? x : slope * x
};
/// Average counts padding where count_padding (PyTorch's default). Ties of max pooling go to the first element.
struct Pool {
  enum class Mode : std::uint8_t { max, average };
  Mode mode = Mode::max;
  int kernel = 2, stride = 2, pad = 0;
  bool count_padding = true;
};
struct GlobalAveragePool {};  ///< n c h w -> n c 1 1
/// n c (c = c*h*w of the flattened input) -> n k. Parameters: weight (, bias).
struct Linear {
  Index in = 0, out = 0;
  bool bias = true;
};
/// Across channels (Krizhevsky et al. 2012, section 3.3): y[c] = x[c] / (k + alpha / size * sum of x^2)^beta, the sum
/// over the `size` channels from c - size / 2 on, as far as they exist. PyTorch's LocalResponseNorm; the paper's alpha
/// is not divided by size.
struct LocalResponseNorm {
  int size = 5;
  float alpha = 1e-4F, beta = 0.75F, k = 1;
};
/// Training: 0 for a share `rate` of the values, x / (1 - rate) for the others; which ones, backend/rules/dropout.hpp
/// says. Elsewhere y = x.
struct Dropout {
  float rate = 0.5F;
};
struct Add {};      ///< two inputs of one shape
struct Flatten {};  ///< n c h w -> n (c h w), order of n c h w
/// Softmax cross-entropy of logits with labels (a, b) weighted (lambda, 1 - lambda) and smoothing e: the target is
/// (1 - e) * onehot + e / classes. Loss of a sample; the batch's scale is applied to its gradient.
struct Loss {
  float label_smoothing = 0;
};
using Attributes = std::variant<Input, Convolution, BatchNorm, Activation, Pool, GlobalAveragePool, Linear,
                                LocalResponseNorm, Dropout, Add, Flatten, Loss>;

struct Node {
  std::string name;  ///< torchvision module path, `layer1.0.conv1`; generated where a function has none
  Attributes attributes;
  std::vector<NodeId> inputs;
  std::vector<ParameterSpec> parameters;
};

template <class T>
const T* as(const Node& node) {
  return std::get_if<T>(&node.attributes);
}

struct Graph {
  std::string model;  ///< full name, printed in logs: `resnet50 v1.5`
  Index classes = 0;
  std::vector<Node> nodes;  ///< nodes[0] is the Input, the last one the Loss; its input are the logits
  NodeId logits() const { return nodes.back().inputs.at(0); }
};

/// Shape of a node's output for one sample: c h w (h = w = 1 after Flatten, Linear, global pooling).
struct Shape {
  Index c = 0, h = 1, w = 1;
  Index count() const { return c * h * w; }
  bool operator==(const Shape&) const = default;
};

/// Output shape of every node for images of height x width; of the loss: 1. Throws Error(usage) naming the node where
/// sizes don't fit. Whether the graph is one at all, make_plan() checks.
std::vector<Shape> infer_shapes(const Graph& graph, Index height, Index width);

/// The operation with all its attributes, on one line: `convolution 64 -> 128, 3x3, stride 2, pad 1, groups 1`.
std::string describe(const Attributes& attributes);

/// Per node: whether a parameter lies at or before it, so that training needs the gradient of its output.
std::vector<bool> needs_gradient(const Graph& graph);

/// Multiply-adds of one forward pass of one sample (convolutions and linear layers), and parameters.
struct Cost {
  double macs = 0;            ///< 1 multiply-add = 1 MAC = 2 FLOP
  double training_flops = 0;  ///< forward + data gradient + weight gradient; no data gradient for the first layer
  Index parameters = 0;
};
Cost cost_of(const Graph& graph, Index height, Index width);
/// Of one node alone, for one sample.
double macs_of(const Node& node, const Shape& output);

}  // namespace convoy
