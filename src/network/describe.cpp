// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "network/graph.hpp"

namespace convoy {
namespace {

// Every attribute that changes the function must appear: the plan's digest is made of these texts.
struct Describe {
  std::string operator()(const Input& input) const { return fmt::format("input {} channels", input.channels); }
  std::string operator()(const Convolution& c) const {
    return fmt::format("convolution {} -> {}, {}x{}, stride {}, pad {}, groups {}{}", c.in, c.out, c.kernel, c.kernel,
                       c.stride, c.pad, c.groups, c.bias ? ", bias" : "");
  }
  std::string operator()(const BatchNorm& norm) const {
    return fmt::format("batch norm {}, momentum {}, epsilon {}", norm.channels, norm.momentum, norm.epsilon);
  }
  std::string operator()(const Activation& activation) const {
    switch (activation.curve) {
      case Curve::relu:
        return "relu";
      case Curve::leaky_relu:
        return fmt::format("leaky relu, slope {}", activation.slope);
      case Curve::tanh:
        return "tanh";
    }
    return "unknown activation";
  }
  std::string operator()(const Pool& pool) const {
    const bool average = pool.mode == Pool::Mode::average;
    return fmt::format("{} pool {}x{}, stride {}, pad {}{}", average ? "average" : "max", pool.kernel, pool.kernel,
                       pool.stride, pool.pad, average && pool.count_padding ? ", padding counted" : "");
  }
  std::string operator()(const GlobalAveragePool&) const { return "global average pool"; }
  std::string operator()(const Linear& linear) const {
    return fmt::format("linear {} -> {}{}", linear.in, linear.out, linear.bias ? ", bias" : "");
  }
  std::string operator()(const LocalResponseNorm& norm) const {
    return fmt::format("local response norm over {}, alpha {}, beta {}, k {}", norm.size, norm.alpha, norm.beta,
                       norm.k);
  }
  std::string operator()(const Dropout& dropout) const { return fmt::format("dropout {}", dropout.rate); }
  std::string operator()(const Add&) const { return "add"; }
  std::string operator()(const Flatten&) const { return "flatten"; }
  std::string operator()(const Loss& loss) const {
    return fmt::format("softmax cross-entropy, label smoothing {}", loss.label_smoothing);
  }
};

}  // namespace

std::string describe(const Attributes& attributes) { return std::visit(Describe{}, attributes); }

}  // namespace convoy
