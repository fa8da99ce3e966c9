// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graphs/convolution_graph.hpp"

#include <fmt/format.h>

namespace convoy::cuda {
namespace {

class Operands {
 public:
  explicit Operands(const ConvolutionGraph& graph) : f_(graph) {}

  std::vector<Operand> run() {
    switch (f_.pass) {
      case Pass::forward:
        forward();
        break;
      case Pass::data_gradient:
        data_gradient();
        break;
      case Pass::weight_gradient:
        add(Role::dy, Access::read, output());
        prologue();
        add(Role::dw, Access::write, filter());
        break;
    }
    return std::move(result_);
  }

 private:
  using Dims = std::array<Index, 4>;
  Dims input() const { return {f_.n, f_.c, f_.h, f_.w}; }
  Dims output() const { return {f_.n, f_.k, f_.p(), f_.q()}; }
  Dims filter() const { return {f_.k, f_.c / f_.groups, f_.r, f_.s}; }

  void add(Role role, Access access, const Dims& dims, bool is_float = false) {
    result_.push_back({role, access, dims, is_float});
  }
  void add_channels(std::initializer_list<Role> roles, Access access, bool is_float) {
    for (const Role role : roles) add(role, access, {1, f_.c, 1, 1}, is_float);
  }

  void prologue() {
    add(Role::x, Access::read, input());
    if (f_.fusion != Fusion::none) add_channels({Role::scale, Role::shift}, Access::read, false);
    if (joins(f_.fusion)) add(Role::other, Access::read, input());
    if (f_.fusion == Fusion::join_norms) add_channels({Role::scale2, Role::shift2}, Access::read, false);
  }

  void forward() {
    prologue();
    if (joins(f_.fusion)) add(Role::z, Access::write, input());
    add(Role::w, Access::read, filter());
    add(Role::y, Access::write, output());
    if (!f_.statistics) return;
    add(Role::sum, Access::write, {1, f_.k, 1, 1}, true);
    add(Role::squares, Access::write, {1, f_.k, 1, 1}, true);
  }

  void data_gradient() {
    add(Role::dy, Access::read, output());
    add(Role::w, Access::read, filter());
    if (f_.adds) add(Role::add, Access::read, input());
    add(Role::dx, Access::write, input());
    if (f_.fusion == Fusion::none) return;
    add(Role::x, Access::read, input());
    add_channels({Role::mean, Role::rstd, Role::gamma, Role::beta}, Access::read, true);
    if (joins(f_.fusion)) add(Role::other, Access::read, input());
    if (f_.fusion == Fusion::join_norms)
      add_channels({Role::mean2, Role::rstd2, Role::gamma2, Role::beta2}, Access::read, true);
    add_channels({Role::dgamma, Role::dbeta, Role::a, Role::b, Role::d}, Access::write, true);
    if (f_.fusion == Fusion::join_norms)
      add_channels({Role::dgamma2, Role::dbeta2, Role::a2, Role::b2, Role::d2}, Access::write, true);
  }

  const ConvolutionGraph& f_;
  std::vector<Operand> result_;
};

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::data_gradient:
      return "data gradient";
    case Pass::weight_gradient:
      return "weight gradient";
  }
  return "";
}

const char* name_of(Fusion fusion) {
  switch (fusion) {
    case Fusion::none:
      return "";
    case Fusion::norm:
      return " [norm]";
    case Fusion::join:
      return " [join]";
    case Fusion::join_norms:
      return " [join of norms]";
  }
  return "";
}

}  // namespace

double flops_of(const ConvolutionGraph& graph) {
  const Index products = graph.c / graph.groups * graph.r * graph.s;  // of one result
  return 2 * static_cast<double>(graph.n * graph.p() * graph.q() * graph.k) * static_cast<double>(products);
}

std::vector<Operand> operands_of(const ConvolutionGraph& graph) { return Operands(graph).run(); }

std::string describe_fusion(const ConvolutionGraph& f) {
  return fmt::format("{}{}{}{}", name_of(f.pass), name_of(f.fusion), f.statistics ? " +statistics" : "",
                     f.adds ? " +add" : "");
}

std::string describe(const ConvolutionGraph& f) {
  const std::string padding = f.pad == f.pad_w ? fmt::format("{}", f.pad) : fmt::format("{}x{}", f.pad, f.pad_w);
  return fmt::format("{} {} n{} {}x{}x{} -> {} {}x{} s{} p{} g{}", describe_fusion(f), name_of(f.precision), f.n, f.c,
                     f.h, f.w, f.k, f.r, f.s, f.stride, padding, f.groups);
}

}  // namespace convoy::cuda
