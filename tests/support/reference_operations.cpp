// SPDX-License-Identifier: Apache-2.0
#include "support/reference_operations.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "support/reference_convolution.hpp"
#include "support/reference_response.hpp"

namespace convoy::reference {
namespace {

Output forward(const BatchNorm& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor::like(x), Values(static_cast<std::size_t>(x.c), 0.0),
                Values(static_cast<std::size_t>(x.c), 0.0)};
  const Index pixels = x.h * x.w;
  const double count = static_cast<double>(x.n * pixels);
  for (Index c = 0; c < x.c; ++c) {
    const auto k = static_cast<std::size_t>(c);
    double &mean = output.mean[k], &variance = output.variance[k];
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) mean += x.line(i, c, 0)[j] / count;
    }
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) variance += (x.line(i, c, 0)[j] - mean) * (x.line(i, c, 0)[j] - mean) / count;
    }
    const bool running = operands.running_mean != nullptr;
    const double centre = running ? operands.running_mean->at(k) : mean;
    const double deviation = std::sqrt((running ? operands.running_variance->at(k) : variance) + spec.epsilon);
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) {
        output.y.line(i, c, 0)[j] = operands.parameters.at(0)->at(k) * (x.line(i, c, 0)[j] - centre) / deviation +
                                    operands.parameters.at(1)->at(k);
      }
    }
  }
  return output;
}

/// dshift = sum dy, dscale = sum dy * xhat, dx = scale / deviation * (dy - mean(dy) - xhat * mean(dy * xhat)); with
/// running statistics dx = scale / deviation * dy.
Gradient backward(const BatchNorm& spec, const Operands& operands, const Output& output, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  const auto channels = static_cast<std::size_t>(x.c);
  Gradient gradient{{Tensor::like(x)}, {Values(channels, 0.0), Values(channels, 0.0)}};
  const Index pixels = x.h * x.w;
  const double count = static_cast<double>(x.n * pixels);
  for (Index c = 0; c < x.c; ++c) {
    const auto k = static_cast<std::size_t>(c);
    const bool running = operands.running_mean != nullptr;
    const double centre = running ? operands.running_mean->at(k) : output.mean[k];
    const double deviation =
        std::sqrt((running ? operands.running_variance->at(k) : output.variance[k]) + spec.epsilon);
    double &dscale = gradient.dparameters[0][k], &dshift = gradient.dparameters[1][k];
    const auto normalised = [&](Index i, Index j) { return (x.line(i, c, 0)[j] - centre) / deviation; };
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) {
        dshift += dy.line(i, c, 0)[j];
        dscale += dy.line(i, c, 0)[j] * normalised(i, j);
      }
    }
    for (Index i = 0; i < x.n; ++i) {
      for (Index j = 0; j < pixels; ++j) {
        const double through = running ? 0.0 : (dshift + normalised(i, j) * dscale) / count;
        gradient.dx[0].line(i, c, 0)[j] =
            operands.parameters.at(0)->at(k) / deviation * (dy.line(i, c, 0)[j] - through);
      }
    }
  }
  return gradient;
}

double normal_distribution(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

double activate(const Activation& spec, double x) {
  switch (spec.kind) {
    case ActivationKind::relu:
      return x > 0 ? x : 0;
    case ActivationKind::leaky_relu:
      return x > 0 ? x : double{spec.slope} * x;
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::gelu:
      return x * normal_distribution(x);
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::identity:
      return x;
  }
  throw std::logic_error("unknown activation");
}

double slope_at(const Activation& spec, double x) {
  switch (spec.kind) {
    case ActivationKind::relu:
      return x > 0 ? 1 : 0;
    case ActivationKind::leaky_relu:
      return x > 0 ? 1 : double{spec.slope};
    case ActivationKind::tanh:
      return 1 - std::tanh(x) * std::tanh(x);
    case ActivationKind::gelu:
      return normal_distribution(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    case ActivationKind::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return s * (1 + x * (1 - s));
    }
    case ActivationKind::identity:
      return 1;
  }
  throw std::logic_error("unknown activation");
}

Output forward(const Activation& spec, const Operands& operands) {
  Output output{*operands.x.at(0), {}, {}};
  for (double& v : output.y.values) v = activate(spec, v);
  return output;
}

Gradient backward(const Activation& spec, const Operands& operands, const Output&, const Tensor& dy) {
  Gradient gradient{{dy}, {}};
  for (std::size_t i = 0; i < dy.values.size(); ++i)
    gradient.dx[0].values[i] *= slope_at(spec, operands.x.at(0)->values[i]);
  return gradient;
}

/// The part of a pooling window that lies inside of the image.
struct Window {
  Index top, bottom, left, right;
  Index count() const { return (bottom - top) * (right - left); }
};
Window window_at(const Pool& spec, const Tensor& x, Index p, Index q) {
  const Index top = p * spec.stride - spec.pad, left = q * spec.stride - spec.pad;
  return {std::max<Index>(top, 0), std::min<Index>(top + spec.kernel, x.h), std::max<Index>(left, 0),
          std::min<Index>(left + spec.kernel, x.w)};
}
double divisor(const Pool& spec, const Window& window) {
  return static_cast<double>(spec.count_padding ? Index{spec.kernel} * spec.kernel : window.count());
}

/// The first of the largest elements, in the order of rows.
const double* largest(const Tensor& x, Index i, Index c, const Window& window) {
  const double* best = x.line(i, c, window.top) + window.left;
  for (Index h = window.top; h < window.bottom; ++h) {
    for (Index w = window.left; w < window.right; ++w) {
      if (x.at(i, c, h, w) > *best) best = x.line(i, c, h) + w;
    }
  }
  return best;
}

/// Calls body(i, c, p, q, window) for each output.
template <class Body>
void for_each_window(const Pool& spec, const Tensor& x, const Tensor& y, const Body& body) {
  for (Index i = 0; i < y.n; ++i) {
    for (Index c = 0; c < y.c; ++c) {
      for (Index p = 0; p < y.h; ++p) {
        for (Index q = 0; q < y.w; ++q) body(i, c, p, q, window_at(spec, x, p, q));
      }
    }
  }
}

Output forward(const Pool& spec, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  const auto size = [&](Index from) { return (from + 2 * spec.pad - spec.kernel) / spec.stride + 1; };
  Output output{Tensor(x.n, x.c, size(x.h), size(x.w)), {}, {}};
  for_each_window(spec, x, output.y, [&](Index i, Index c, Index p, Index q, const Window& window) {
    if (spec.mode == Pool::Mode::max) {
      output.y.at(i, c, p, q) = *largest(x, i, c, window);
      return;
    }
    double sum = 0;
    for (Index h = window.top; h < window.bottom; ++h) {
      for (Index w = window.left; w < window.right; ++w) sum += x.at(i, c, h, w);
    }
    output.y.at(i, c, p, q) = sum / divisor(spec, window);
  });
  return output;
}

Gradient backward(const Pool& spec, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  Gradient gradient{{Tensor::like(x)}, {}};
  Tensor& dx = gradient.dx[0];
  for_each_window(spec, x, dy, [&](Index i, Index c, Index p, Index q, const Window& window) {
    if (spec.mode == Pool::Mode::max) {
      dx.values[static_cast<std::size_t>(largest(x, i, c, window) - x.values.data())] += dy.at(i, c, p, q);
      return;
    }
    for (Index h = window.top; h < window.bottom; ++h) {
      for (Index w = window.left; w < window.right; ++w) dx.at(i, c, h, w) += dy.at(i, c, p, q) / divisor(spec, window);
    }
  });
  return gradient;
}

Output forward(const GlobalAveragePool&, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor(x.n, x.c), {}, {}};
  for (Index i = 0; i < x.n; ++i) {
    for (Index c = 0; c < x.c; ++c) {
      for (Index j = 0; j < x.h * x.w; ++j) output.y.at(i, c) += x.line(i, c, 0)[j] / static_cast<double>(x.h * x.w);
    }
  }
  return output;
}

Gradient backward(const GlobalAveragePool&, const Operands& operands, const Output&, const Tensor& dy) {
  const Tensor& x = *operands.x.at(0);
  Gradient gradient{{Tensor::like(x)}, {}};
  for (Index i = 0; i < x.n; ++i) {
    for (Index c = 0; c < x.c; ++c) {
      std::fill_n(gradient.dx[0].line(i, c, 0), x.h * x.w, dy.at(i, c) / static_cast<double>(x.h * x.w));
    }
  }
  return gradient;
}

Output forward(const LocalResponseNorm& spec, const Operands& operands) {
  return {response_forward(spec, *operands.x.at(0)), {}, {}};
}

Gradient backward(const LocalResponseNorm& spec, const Operands& operands, const Output&, const Tensor& dy) {
  return {{response_backward(spec, *operands.x.at(0), dy)}, {}};
}

Tensor times_factors(const Tensor& x, const Operands& operands) {
  Tensor result = x;
  if (operands.factors == nullptr) return result;
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] *= operands.factors->at(i);
  return result;
}

Output forward(const Dropout&, const Operands& operands) {
  return {times_factors(*operands.x.at(0), operands), {}, {}};
}

Gradient backward(const Dropout&, const Operands& operands, const Output&, const Tensor& dy) {
  return {{times_factors(dy, operands)}, {}};
}

Output forward(const Add&, const Operands& operands) {
  Output output{*operands.x.at(0), {}, {}};
  for (std::size_t i = 0; i < output.y.values.size(); ++i) output.y.values[i] += operands.x.at(1)->values.at(i);
  return output;
}

Gradient backward(const Add&, const Operands&, const Output&, const Tensor& dy) { return {{dy, dy}, {}}; }

Output forward(const Flatten&, const Operands& operands) {
  const Tensor& x = *operands.x.at(0);
  Output output{Tensor(x.n, x.c * x.h * x.w), {}, {}};
  output.y.values = x.values;
  return output;
}

Gradient backward(const Flatten&, const Operands& operands, const Output&, const Tensor& dy) {
  Gradient gradient{{Tensor::like(*operands.x.at(0))}, {}};
  gradient.dx[0].values = dy.values;
  return gradient;
}

template <class Other>
Output forward(const Other&, const Operands&) {
  throw std::logic_error("Input and Loss are not applied like other nodes");
}
template <class Other>
Gradient backward(const Other&, const Operands&, const Output&, const Tensor&) {
  throw std::logic_error("Input and Loss are not applied like other nodes");
}

}  // namespace

Output forward(const Node& node, const Operands& operands) {
  return std::visit([&](const auto& attributes) { return forward(attributes, operands); }, node.attributes);
}

Gradient backward(const Node& node, const Operands& operands, const Output& output, const Tensor& dy) {
  return std::visit([&](const auto& attributes) { return backward(attributes, operands, output, dy); },
                    node.attributes);
}

}  // namespace convoy::reference
