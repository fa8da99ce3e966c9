// SPDX-License-Identifier: Apache-2.0
#include "support/host_cuda/reference_graph.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace convoy::cuda {
namespace {

using Values = std::vector<double>;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Elements in storage, or floats.
class Codec {
 public:
  explicit Codec(Precision precision) : precision_(precision) {}
  Values load(const void* from, Index count) const {
    Values values(at(count));
    for (Index i = 0; i < count; ++i) values[at(i)] = get(from, i);
    return values;
  }
  static Values load_floats(const void* from, Index count) {
    const auto* const floats = static_cast<const float*>(from);
    return {floats, floats + count};
  }
  /// Also rounds `values` to what was stored.
  void store(void* to, Values& values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(to, static_cast<Index>(i), values[i]);
      values[i] = get(to, static_cast<Index>(i));
    }
  }
  void round(Values& values) const {
    double cell = 0;
    for (double& value : values) {
      put(&cell, 0, value);
      value = get(&cell, 0);
    }
  }

 private:
  double get(const void* from, Index i) const {
    switch (precision_) {
      case Precision::fp16:
        return static_cast<double>(__half2float(static_cast<const __half*>(from)[i]));
      case Precision::bf16:
        return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(from)[i]));
      case Precision::fp32:
      case Precision::tf32:
        break;
    }
    return static_cast<double>(static_cast<const float*>(from)[i]);
  }
  void put(void* to, Index i, double value) const {
    switch (precision_) {
      case Precision::fp16:
        static_cast<__half*>(to)[i] = __double2half(value);
        return;
      case Precision::bf16:
        static_cast<__nv_bfloat16*>(to)[i] = __double2bfloat16(value);
        return;
      case Precision::fp32:
      case Precision::tf32:
        break;
    }
    static_cast<float*>(to)[i] = static_cast<float>(value);
  }

  Precision precision_;
};

void store_floats(void* to, const Values& values) {
  auto* const floats = static_cast<float*>(to);
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
}

/// Calls use(n, output pixel, input pixel, tap) for all products of the convolution's geometry.
template <class Use>
void for_each_tap(const ConvolutionGraph& f, const Use& use) {
  for (Index n = 0; n < f.n; ++n)
    for (Index i = 0; i < f.p(); ++i)
      for (Index j = 0; j < f.q(); ++j)
        for (Index r = 0; r < f.r; ++r) {
          const Index y = i * f.stride + r - f.pad;
          if (y < 0 || y >= f.h) continue;
          for (Index s = 0; s < f.s; ++s) {
            const Index x = j * f.stride + s - f.pad_w;
            if (x >= 0 && x < f.w) use((n * f.p() + i) * f.q() + j, (n * f.h + y) * f.w + x, r * f.s + s);
          }
        }
}

/// Filters k r s c as [tap][c or k][k or c], one group after another, so that inner loops are contiguous.
struct Filter {
  Index taps, groups, c, k;  ///< c and k of a group
  explicit Filter(const ConvolutionGraph& f)
      : taps(f.r * f.s), groups(f.groups), c(f.c / f.groups), k(f.k / f.groups) {}
  Index stored(Index group, Index kk, Index tap, Index cc) const { return ((group * k + kk) * taps + tap) * c + cc; }
  std::size_t count() const { return at(groups * k * taps * c); }
  /// [tap][group][c][k]
  Values by_input(const Values& w) const {
    Values result(w.size());
    for (Index t = 0; t < taps; ++t)
      for (Index g = 0; g < groups; ++g)
        for (Index cc = 0; cc < c; ++cc)
          for (Index kk = 0; kk < k; ++kk)
            result[at(((t * groups + g) * c + cc) * k + kk)] = w[at(stored(g, kk, t, cc))];
    return result;
  }
};

Values convolve(const ConvolutionGraph& f, const Values& z, const Values& w) {
  const Filter filter(f);
  const Values turned = filter.by_input(w);
  Values y(at(f.n * f.p() * f.q() * f.k), 0.0);
  for_each_tap(f, [&](Index out, Index in, Index tap) {
    for (Index g = 0; g < filter.groups; ++g)
      for (Index c = 0; c < filter.c; ++c) {
        const double value = z[at(in * f.c + g * filter.c + c)];
        const double* const row = &turned[at(((tap * filter.groups + g) * filter.c + c) * filter.k)];
        double* const sum = &y[at(out * f.k + g * filter.k)];
        for (Index k = 0; k < filter.k; ++k) sum[k] += value * row[k];
      }
  });
  return y;
}

Values gradient_of_data(const ConvolutionGraph& f, const Values& dy, const Values& w) {
  const Filter filter(f);
  Values dx(at(f.n * f.h * f.w * f.c), 0.0);
  for_each_tap(f, [&](Index out, Index in, Index tap) {
    for (Index g = 0; g < filter.groups; ++g)
      for (Index k = 0; k < filter.k; ++k) {
        const double value = dy[at(out * f.k + g * filter.k + k)];
        const double* const row = &w[at(filter.stored(g, k, tap, 0))];
        double* const sum = &dx[at(in * f.c + g * filter.c)];
        for (Index c = 0; c < filter.c; ++c) sum[c] += value * row[c];
      }
  });
  return dx;
}

Values gradient_of_filter(const ConvolutionGraph& f, const Values& dy, const Values& z) {
  const Filter filter(f);
  Values dw(filter.count(), 0.0);
  for_each_tap(f, [&](Index out, Index in, Index tap) {
    for (Index g = 0; g < filter.groups; ++g)
      for (Index k = 0; k < filter.k; ++k) {
        const double value = dy[at(out * f.k + g * filter.k + k)];
        const double* const row = &z[at(in * f.c + g * filter.c)];
        double* const sum = &dw[at(filter.stored(g, k, tap, 0))];
        for (Index c = 0; c < filter.c; ++c) sum[c] += value * row[c];
      }
  });
  return dw;
}

/// A graph at work: its tensors by role.
class Run {
 public:
  Run(const ConvolutionGraph& graph, const Pointers& pointers)
      : f_(graph), pointers_(pointers), codec_(graph.precision) {}

  void operator()() {
    switch (f_.pass) {
      case Pass::forward:
        return forward();
      case Pass::data_gradient:
        return data_gradient();
      case Pass::weight_gradient: {
        const Values dy = load(Role::dy, outputs());
        Values dw = gradient_of_filter(f_, dy, prologue());
        codec_.store(pointers_[Role::dw], dw);
        return;
      }
    }
  }

 private:
  Index inputs() const { return f_.n * f_.h * f_.w * f_.c; }
  Index outputs() const { return f_.n * f_.p() * f_.q() * f_.k; }
  Values load(Role role, Index count) const { return codec_.load(pointers_[role], count); }
  Values channels(Role role) const { return Codec::load_floats(pointers_[role], f_.c); }

  Values affine(Role x, Role scale, Role shift) const {
    Values values = load(x, inputs());
    const Values a = load(scale, f_.c), b = load(shift, f_.c);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = a[i % at(f_.c)] * values[i] + b[i % at(f_.c)];
    return values;
  }

  /// What the convolution sees.
  Values prologue() const {
    if (f_.fusion == Fusion::none) return load(Role::x, inputs());
    Values z = affine(Role::x, Role::scale, Role::shift);
    if (f_.fusion != Fusion::norm) {
      const Values other =
          f_.fusion == Fusion::join ? load(Role::other, inputs()) : affine(Role::other, Role::scale2, Role::shift2);
      for (std::size_t i = 0; i < z.size(); ++i) z[i] += other[i];
    }
    for (double& value : z) value = value < 0 ? 0 : value;  // keeps NaN
    codec_.round(z);
    return z;
  }

  void forward() {
    Values z = prologue();
    if (pointers_[Role::z] != nullptr) codec_.store(pointers_[Role::z], z);
    Values y = convolve(f_, z, load(Role::w, static_cast<Index>(Filter(f_).count())));
    codec_.store(pointers_[Role::y], y);
    if (!f_.statistics) return;
    Values sum(at(f_.k)), squares(at(f_.k));
    for (std::size_t i = 0; i < y.size(); ++i) {
      sum[i % at(f_.k)] += y[i];
      squares[i % at(f_.k)] += y[i] * y[i];
    }
    store_floats(pointers_[Role::sum], sum);
    store_floats(pointers_[Role::squares], squares);
  }

  struct Norm {
    Values x, mean, rstd, gamma, beta;
    double hat(std::size_t i, std::size_t c) const { return (x[i] - mean[c]) * rstd[c]; }
    double y(std::size_t i, std::size_t c) const { return hat(i, c) * gamma[c] + beta[c]; }
  };

  void norm_gradient(const Values& g, const Norm& norm, const std::array<Role, 5>& roles) const {
    const std::size_t channels = at(f_.c);
    Values dgamma(channels), dbeta(channels), a(channels), b(channels), d(channels);
    for (std::size_t i = 0; i < g.size(); ++i) {
      dgamma[i % channels] += g[i] * norm.hat(i, i % channels);
      dbeta[i % channels] += g[i];
    }
    const auto count = static_cast<double>(f_.n * f_.h * f_.w);
    for (std::size_t c = 0; c < channels; ++c) {
      a[c] = norm.gamma[c] * norm.rstd[c];
      b[c] = -a[c] * norm.rstd[c] * dgamma[c] / count;
      d[c] = -a[c] * dbeta[c] / count - b[c] * norm.mean[c];
    }
    const Values* const all[] = {&dgamma, &dbeta, &a, &b, &d};
    for (std::size_t i = 0; i < roles.size(); ++i) store_floats(pointers_[roles[i]], *all[i]);
  }

  void data_gradient() {
    Values g = gradient_of_data(f_, load(Role::dy, outputs()), load(Role::w, static_cast<Index>(Filter(f_).count())));
    if (f_.adds) {
      const Values add = load(Role::add, inputs());
      for (std::size_t i = 0; i < g.size(); ++i) g[i] += add[i];
    }
    if (f_.fusion == Fusion::none) return codec_.store(pointers_[Role::dx], g);
    const Norm first{load(Role::x, inputs()), channels(Role::mean), channels(Role::rstd), channels(Role::gamma),
                     channels(Role::beta)};
    Norm second;
    Values other;
    if (f_.fusion != Fusion::norm) other = load(Role::other, inputs());
    if (f_.fusion == Fusion::join_norms)
      second = {other, channels(Role::mean2), channels(Role::rstd2), channels(Role::gamma2), channels(Role::beta2)};
    for (std::size_t i = 0; i < g.size(); ++i) {
      const std::size_t c = i % at(f_.c);
      double z = first.y(i, c);
      if (f_.fusion == Fusion::join) z += other[i];
      if (f_.fusion == Fusion::join_norms) z += second.y(i, c);
      if (!(z > 0)) g[i] = 0;
    }
    codec_.store(pointers_[Role::dx], g);
    norm_gradient(g, first, {Role::dgamma, Role::dbeta, Role::a, Role::b, Role::d});
    if (f_.fusion == Fusion::join_norms)
      norm_gradient(g, second, {Role::dgamma2, Role::dbeta2, Role::a2, Role::b2, Role::d2});
  }

  const ConvolutionGraph& f_;
  const Pointers& pointers_;
  const Codec codec_;
};

}  // namespace

void run_form(const ConvolutionGraph& graph, const Pointers& pointers) { Run(graph, pointers)(); }

}  // namespace convoy::cuda
