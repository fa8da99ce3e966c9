// SPDX-License-Identifier: Apache-2.0
// Convolutions and linear layers, which are convolutions over all that they see.
#include "backend/cuda/operations/convolution.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

/// What a fused convolution reads in place of its source, and that it writes the source where that is a join.
void add_prologue(ForwardPass& pass, int source_id, Fusion fusion, GraphCall& call) {
  PlanBuilder& builder = pass.builder;
  const Value& source = builder.value(source_id);
  const int norm = source.terms[0].norm;
  pass.settle(fusion == Fusion::join_norms ? std::vector<int>{norm, source.terms[1].norm} : std::vector<int>{norm});
  call.operands.emplace_back(Role::x, pass.read(source.terms[0].value));
  call.operands.emplace_back(Role::scale, builder.vector(norm, NormVector::low_scale));
  call.operands.emplace_back(Role::shift, builder.vector(norm, NormVector::low_shift));
  if (fusion == Fusion::norm) return;
  call.operands.emplace_back(Role::other, pass.read(source.terms[1].value));
  if (fusion == Fusion::join_norms) {
    call.operands.emplace_back(Role::scale2, builder.vector(source.terms[1].norm, NormVector::low_scale));
    call.operands.emplace_back(Role::shift2, builder.vector(source.terms[1].norm, NormVector::low_shift));
  }
  call.operands.emplace_back(Role::z, pass.make(source_id));
  call.nodes = source.nodes;
}

void convolve(ForwardPass& pass, int id) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const int source = value.sources[0];
  const std::size_t begin = builder.steps();
  const bool statistics = pass.needs_statistics(id);
  std::optional<SelectedKernel> selected;
  GraphCall call;
  const Fusion fusion = pass.is_stored(source) ? Fusion::none : pass.selector.fusion_of(id);
  if (joins(fusion) || (fusion == Fusion::norm && pass.selector.in_prologues(source))) {
    selected = pass.selector.forward(id, fusion, statistics);
    if (selected) add_prologue(pass, source, fusion, call);
  }
  if (!selected) {
    call.operands.emplace_back(Role::x, pass.read(source));
    selected = pass.selector.forward(id, Fusion::none, statistics);
  }
  const bool sums_too = selected->graph.statistics;
  const BufferRef y = pass.make(id);
  const BufferRef sum = sums_too ? builder.add_floats(value.layout.c) : BufferRef{};
  const BufferRef squares = sums_too ? builder.add_floats(value.layout.c) : BufferRef{};
  call.what = "convolution";
  call.graph = selected->graph;
  call.operation = selected->operation;
  call.operands.emplace_back(Role::w, builder.filter(builder.weight_row(id)));
  call.operands.emplace_back(Role::y, y);
  call.operands.emplace_back(Role::sum, sum);
  call.operands.emplace_back(Role::squares, squares);
  call.nodes.insert(call.nodes.end(), value.nodes.begin(), value.nodes.end());
  builder.add_graph(std::move(call));
  if (statistics && sums_too) finish_norms(pass, id, {sum, squares, 1, 0, true});
  if (statistics && !sums_too) add_statistics(pass, id);
  builder.tag(begin, source);
}

void add_weight_gradient(BackwardPass& pass, int id, BufferRef dy) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const int source = value.sources[0], row = builder.weight_row(id);
  GraphCall call{.what = "weight gradient", .nodes = value.nodes};
  call.operands.emplace_back(Role::dy, dy);
  const bool stored = pass.forward.is_stored(source);
  if (stored) {
    call.operands.emplace_back(Role::x, pass.forward.tensor(source).value);
  } else {
    const Term term = builder.value(source).terms[0];
    call.operands.emplace_back(Role::x, pass.forward.tensor(term.value).value);
    call.operands.emplace_back(Role::scale, builder.vector(term.norm, NormVector::low_scale));
    call.operands.emplace_back(Role::shift, builder.vector(term.norm, NormVector::low_shift));
  }
  SelectedKernel selected = pass.selector.weight_gradient(id, stored ? Fusion::none : Fusion::norm);
  const ConvolutionGraph& graph = selected.graph;
  const BufferRef dw = builder.place(builder.add_buffer(
      BufferKind::channels, graph.k * graph.r * graph.s * graph.c / graph.groups * bytes_of(builder.storage())));
  call.operands.emplace_back(Role::dw, dw);
  call.graph = graph;
  call.operation = std::move(selected.operation);
  builder.add_graph(std::move(call)).serves = source;
  builder.finish_filter(row, dw);
}

void add_data_gradient(BackwardPass& pass, int id, BufferRef dy) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const int to = value.sources[0];
  const Value& source = builder.value(to);
  // The last contribution to a group of norms and a ReLU may take the mask and the norms' sums along. Frozen norms have
  // no sums.
  const bool sums = std::all_of(source.terms.begin(), source.terms.end(),
                                [&](const Term& term) { return term.norm < 0 || builder.lowering().moves(term); });
  const Fusion fusion = sums && pass.missing(to) == 1 ? pass.selector.fusion_of(id) : Fusion::none;
  const bool adds = fusion != Fusion::none && pass.contributed(to) > 0;
  SelectedKernel selected = pass.selector.data_gradient(id, fusion, adds);
  const bool fused = selected.graph.fusion != Fusion::none;
  GraphCall call{.what = "data gradient", .graph = selected.graph, .operation = std::move(selected.operation)};
  call.nodes = value.nodes;
  call.operands = {{Role::dy, dy}, {Role::w, builder.filter(builder.weight_row(id))}};
  if (!fused) {
    const BufferRef dx = builder.add_tensor(to);
    call.operands.emplace_back(Role::dx, dx);
    builder.add_graph(std::move(call)).serves = to;
    return pass.contribute(to, dx);
  }
  pass.complete(to);
  const std::size_t begin = builder.steps();
  if (adds) call.operands.emplace_back(Role::add, pass.gradient(to));
  const BufferRef g = builder.add_tensor(to);
  call.operands.emplace_back(Role::dx, g);
  call.nodes.insert(call.nodes.end(), source.nodes.begin(), source.nodes.end());
  std::vector<NormSums> norms;
  const auto add_norm = [&](const Term& term, Role x, std::array<Role, 4> reads, std::array<Role, 5> writes) {
    const Norm& norm = builder.norm(term.norm);
    const Index channels = source.layout.c;
    call.operands.emplace_back(x, pass.forward.tensor(term.value).value);
    call.operands.emplace_back(reads[0], builder.vector(term.norm, NormVector::mean));
    call.operands.emplace_back(reads[1], builder.vector(term.norm, NormVector::rstd));
    call.operands.emplace_back(reads[2], builder.parameter(norm.scale));
    call.operands.emplace_back(reads[3], builder.parameter(norm.shift));
    const BufferRef dgamma = builder.add_floats(channels), dbeta = builder.add_floats(channels);
    call.operands.emplace_back(writes[0], dgamma);
    call.operands.emplace_back(writes[1], dbeta);
    // cuDNN's own a, b, d hold for the batch alone; ours are made of the sums, which ranks may share.
    for (std::size_t i = 2; i < writes.size(); ++i) call.operands.emplace_back(writes[i], builder.add_floats(channels));
    norms.push_back({.norm = term.norm, .dbeta = dbeta, .products = dgamma, .kind = Products::normalised});
  };
  add_norm(source.terms[0], Role::x, {Role::mean, Role::rstd, Role::gamma, Role::beta},
           {Role::dgamma, Role::dbeta, Role::a, Role::b, Role::d});
  if (fusion == Fusion::join) call.operands.emplace_back(Role::other, pass.forward.tensor(source.terms[1].value).value);
  if (fusion == Fusion::join_norms)
    add_norm(source.terms[1], Role::other, {Role::mean2, Role::rstd2, Role::gamma2, Role::beta2},
             {Role::dgamma2, Role::dbeta2, Role::a2, Role::b2, Role::d2});
  builder.add_graph(std::move(call));
  if (builder.synchronised()) {
    finish_norms(pass, norms);
  } else {
    for (const NormSums& of_norm : norms) pass.await_gradients(of_norm);
  }
  hand_on(pass, to, g);
  builder.tag(begin, to);
}

void differentiate_convolution(BackwardPass& pass, int id) {
  const BufferRef dy = pass.gradient(id);
  if (pass.builder.trains(pass.builder.weight_row(id))) add_weight_gradient(pass, id, dy);
  if (pass.wants_gradient(pass.builder.value(id).sources[0])) add_data_gradient(pass, id, dy);
}

}  // namespace

void forward(ForwardPass& pass, int id, const Convolution&) { convolve(pass, id); }
void forward(ForwardPass& pass, int id, const Linear&) { convolve(pass, id); }
void backward(BackwardPass& pass, int id, const Convolution&) { differentiate_convolution(pass, id); }
void backward(BackwardPass& pass, int id, const Linear&) { differentiate_convolution(pass, id); }

void add_bias_gradient(BackwardPass& pass, int row, BufferRef g, int id) {
  PlanBuilder& builder = pass.builder;
  if (!builder.trains(row)) return;
  const Index rows = builder.rows(id), channels = builder.value(id).layout.c;
  const ReductionRefs place = builder.add_reduction(rows, channels, 1);
  const BufferRef db = builder.gradient(row);
  const BiasGradient bias{.storage = builder.storage(), .rows = rows, .columns = channels, .stored_columns = channels};
  builder.add_step("bias gradient", builder.value(id).nodes, {g}, {place.sums}, [=](const LaunchContext& launch) {
    BiasGradient now = bias;
    now.dy = launch.at(g);
    now.place = place.at(launch);
    now.loss_scale = launch.loss_scale;
    now.db = launch.floats(db);
    check(bias_gradient(now, launch.stream), "the gradient of a bias");
  });
  builder.finish_row(row);
}

}  // namespace convoy::cuda
