// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/backward.hpp"

#include <algorithm>
#include <utility>

#include "backend/cuda/kernels/dense.hpp"
#include "backend/cuda/kernels/pool.hpp"
#include "backend/cuda/lowering/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Backward::Backward(Assembler& assembler, Chooser& chooser, const ForwardTensors& tensors)
    : a_(assembler), chooser_(chooser), tensors_(tensors) {
  const std::size_t n = a_.values().size();
  contributions_.resize(n);
  done_.assign(n, false);
  missing_.assign(n, 0);
  for (const Value& value : a_.values()) {
    if (!value.used || !value.wants_gradient) continue;
    if (value.source >= 0) ++missing_[at(value.source)];
    for (const Term& term : value.terms) ++missing_[at(term.value)];
  }
}

void Backward::run() {
  a_.enter(Section::backward);
  for (std::size_t i = a_.values().size(); i-- > 0;) {
    const Value& value = a_.values()[i];
    const int id = static_cast<int>(i);
    if (!value.used || !value.wants_gradient || done_[i]) continue;
    switch (value.kind) {
      case ValueKind::input:
        break;
      case ValueKind::logits:
        logits(id);
        break;
      case ValueKind::group: {
        const std::size_t begin = a_.steps();
        group(id);
        a_.tag(begin, id);
        break;
      }
      case ValueKind::convolution:
        convolution(id);
        break;
      case ValueKind::pool:
        pool(id);
        break;
      case ValueKind::global_pool:
        global_pool(id);
        break;
      case ValueKind::local_response:
        local_response(id);
        break;
      case ValueKind::dropout:
        dropout(id);
        break;
      case ValueKind::repack:
        repack(id);
        break;
    }
  }
}

void Backward::contribute(int id, Place gradient) {
  --missing_[at(id)];
  contributions_[at(id)].push_back(gradient);
}

std::vector<Place> Backward::contributions(int id, std::size_t most) {
  std::vector<Place> rest = std::move(contributions_[at(id)]);
  require(!rest.empty() && missing_[at(id)] == 0, "a gradient without all of its contributions");
  while (rest.size() > most) {
    const Place first = rest[rest.size() - 1], second = rest[rest.size() - 2], sum = a_.add_tensor(id);
    rest.resize(rest.size() - 2);
    rest.push_back(sum);
    const BackwardApply add{.storage = a_.storage(), .rows = a_.rows(id), .channels = a_.value(id).extent.c};
    a_.add_step("add gradients", a_.value(id).nodes, {first, second}, {sum}, [=](const Frame& frame) {
      BackwardApply now = add;
      now.from.dz = frame.at(first);
      now.from.dz_more = frame.at(second);
      now.dx = frame.at(sum);
      check(apply_backward(now, frame.stream), "a sum of gradients");
    });
  }
  return rest;
}

void Backward::logits(int id) {
  const Term term = a_.value(id).terms[0];
  const Place dlogits = tensors_.dlogits;
  if (term.bias >= 0) bias_gradient(term.bias, dlogits, term.value);
  if (a_.value(term.value).wants_gradient) contribute(term.value, dlogits);
}

void Backward::bias_gradient(int row, Place g, int id) {
  if (!a_.trains(row)) return;
  const Index rows = a_.rows(id), channels = a_.value(id).extent.c;
  const Place partial = a_.add_floats(reduction_blocks(rows, channels) * channels), db = a_.gradient(row);
  const BiasGradient bias{.storage = a_.storage(), .rows = rows, .columns = channels, .stored_columns = channels};
  a_.add_step("bias gradient", a_.value(id).nodes, {g}, {partial}, [=](const Frame& frame) {
    BiasGradient now = bias;
    now.dy = frame.at(g);
    now.partial = frame.floats(partial);
    now.loss_scale = frame.loss_scale;
    now.db = frame.floats(db);
    check(cuda::bias_gradient(now, frame.stream), "the gradient of a bias");
  });
  a_.finish_row(row);
}

void Backward::convolution(int id) {
  const Value& value = a_.value(id);
  const Place dy = contributions(id, 1).front();
  if (a_.trains(value.window.weight)) weight_gradient(id, dy);
  if (a_.value(value.source).wants_gradient) data_gradient(id, dy);
}

void Backward::weight_gradient(int id, Place dy) {
  const Value& value = a_.value(id);
  const Value& source = a_.value(value.source);
  const int row = value.window.weight;
  GraphCall call{.what = "weight gradient", .nodes = value.nodes};
  call.places.emplace_back(Role::dy, dy);
  const bool stored = static_cast<bool>(tensors_.values[at(value.source)]);
  if (stored) {
    call.places.emplace_back(Role::x, tensors_.values[at(value.source)]);
  } else {
    const Term term = source.terms[0];
    call.places.emplace_back(Role::x, tensors_.values[at(term.value)]);
    call.places.emplace_back(Role::scale, a_.vector(term.norm, Vector::low_scale));
    call.places.emplace_back(Role::shift, a_.vector(term.norm, Vector::low_shift));
  }
  Chosen chosen = chooser_.weight_gradient(id, stored ? Border::none : Border::norm);
  const Form& form = chosen.form;
  const Place dw = a_.place(
      a_.add_buffer(BufferKind::channels, form.k * form.r * form.s * form.c / form.groups * bytes_of(a_.storage())));
  call.places.emplace_back(Role::dw, dw);
  call.form = form;
  call.operation = std::move(chosen.operation);
  a_.add_graph(std::move(call)).serves = value.source;

  const FilterCopy& copy = a_.copy(row);
  const FilterGradient convert{
      .storage = a_.storage(), .k = copy.k, .c = copy.c, .rs = copy.rs, .stored_c = copy.stored_c};
  const Place to = a_.gradient(row);
  a_.add_step("filter gradient", value.nodes, {dw}, {}, [=](const Frame& frame) {
    FilterGradient now = convert;
    now.from = frame.at(dw);
    now.to = frame.floats(to);
    now.loss_scale = frame.loss_scale;
    check(filter_gradient(now, frame.stream), "the gradient of a filter");
  });
  a_.finish_row(row);
}

void Backward::data_gradient(int id, Place dy) {
  const Value& value = a_.value(id);
  const int to = value.source;
  const Value& source = a_.value(to);
  auto& others = contributions_[at(to)];
  // The last contribution to a rectified group of norms may take the mask and the norms' sums along.
  const Border border = missing_[at(to)] == 1 ? border_of(source, value) : Border::none;
  const bool adds = border != Border::none && !others.empty();
  Chosen chosen = chooser_.data_gradient(id, border, adds);
  const bool fused = chosen.form.border != Border::none;
  GraphCall call{.what = "data gradient", .form = chosen.form, .operation = std::move(chosen.operation)};
  call.nodes = value.nodes;
  call.places = {{Role::dy, dy}, {Role::w, a_.filter(value.window.weight)}};
  if (!fused) {
    const Place dx = a_.add_tensor(to);
    call.places.emplace_back(Role::dx, dx);
    a_.add_graph(std::move(call)).serves = to;
    return contribute(to, dx);
  }
  missing_[at(to)] = 0;
  const std::size_t begin = a_.steps();
  if (adds) call.places.emplace_back(Role::add, contributions(to, 1).front());
  const Place g = a_.add_tensor(to);
  call.places.emplace_back(Role::dx, g);
  call.nodes.insert(call.nodes.end(), source.nodes.begin(), source.nodes.end());
  std::vector<std::pair<int, Sums>> norms;
  const auto add_norm = [&](const Term& term, Role x, std::array<Role, 4> reads, std::array<Role, 5> writes) {
    const Norm& norm = a_.norm(term.norm);
    const Index channels = source.extent.c;
    call.places.emplace_back(x, tensors_.values[at(term.value)]);
    call.places.emplace_back(reads[0], a_.vector(term.norm, Vector::mean));
    call.places.emplace_back(reads[1], a_.vector(term.norm, Vector::rstd));
    call.places.emplace_back(reads[2], a_.parameter(norm.scale));
    call.places.emplace_back(reads[3], a_.parameter(norm.shift));
    const Place dgamma = a_.add_floats(channels), dbeta = a_.add_floats(channels);
    call.places.emplace_back(writes[0], dgamma);
    call.places.emplace_back(writes[1], dbeta);
    // cuDNN's own a, b, d hold for the batch alone; ours are made of the sums, which ranks may share.
    for (std::size_t i = 2; i < writes.size(); ++i) call.places.emplace_back(writes[i], a_.add_floats(channels));
    norms.push_back({term.norm, {.dbeta = dbeta, .products = dgamma, .kind = Products::normalised}});
  };
  add_norm(source.terms[0], Role::x, {Role::mean, Role::rstd, Role::gamma, Role::beta},
           {Role::dgamma, Role::dbeta, Role::a, Role::b, Role::d});
  if (border == Border::join) call.places.emplace_back(Role::other, tensors_.values[at(source.terms[1].value)]);
  if (border == Border::join_norms)
    add_norm(source.terms[1], Role::other, {Role::mean2, Role::rstd2, Role::gamma2, Role::beta2},
             {Role::dgamma2, Role::dbeta2, Role::a2, Role::b2, Role::d2});
  a_.add_graph(std::move(call));
  finish_norms(norms);
  hand_on(to, g);
  a_.tag(begin, to);
}

void Backward::pool(int id) {
  const Value& value = a_.value(id);
  if (!a_.value(value.source).wants_gradient) return;
  if (!tensors_.values[at(value.source)]) return pooled_norm(id);
  const Place dy = contributions(id, 1).front();
  const Place dx = a_.add_tensor(value.source), winner = tensors_.winners[at(id)];
  const PoolShape shape = pool_shape(a_, id);
  a_.add_step(winner ? "max pool gradient" : "average pool gradient", value.nodes, {dy, winner}, {dx},
              [=](const Frame& frame) {
                const auto* const winners = static_cast<const std::uint8_t*>(frame.at(winner));
                check(winners != nullptr ? max_pool_backward(shape, frame.at(dy), winners, frame.at(dx), frame.stream)
                                         : average_pool_backward(shape, frame.at(dy), frame.at(dx), frame.stream),
                      "the gradient of pooling");
              });
  contribute(value.source, dx);
}

void Backward::global_pool(int id) {
  const Value& value = a_.value(id);
  const Place dy = contributions(id, 1).front();
  if (!a_.value(value.source).wants_gradient) return;
  const Place dx = a_.add_tensor(value.source);
  const GlobalPool pool{.storage = a_.storage(),
                        .n = a_.samples(),
                        .pixels = a_.value(value.source).extent.pixels(),
                        .channels = value.extent.c};
  a_.add_step("global pool gradient", value.nodes, {dy}, {dx}, [=](const Frame& frame) {
    check(global_pool_backward(pool, frame.at(dy), frame.at(dx), frame.stream), "the gradient of global pooling");
  });
  contribute(value.source, dx);
}

void Backward::local_response(int id) {
  const Value& value = a_.value(id);
  const Place dy = contributions(id, 1).front(), x = tensors_.values[at(value.source)];
  if (!a_.value(value.source).wants_gradient) return;
  const Place dx = a_.add_tensor(value.source);
  const LocalResponse norm = response_of(a_, id);
  a_.add_step("local response gradient", value.nodes, {x, dy}, {dx}, [=](const Frame& frame) {
    check(local_response_backward(norm, frame.at(x), frame.at(dy), frame.at(dx), frame.stream),
          "the gradient of a local response norm");
  });
  contribute(value.source, dx);
}

void Backward::dropout(int id) {
  const Value& value = a_.value(id);
  const Place dy = contributions(id, 1).front();
  if (!a_.value(value.source).wants_gradient) return;
  const Place dx = a_.add_tensor(value.source);
  add_dropout(a_, id, dy, dx);
  contribute(value.source, dx);
}

void Backward::repack(int id) {
  const Value& value = a_.value(id);
  const Place dy = contributions(id, 1).front();
  if (!a_.value(value.source).wants_gradient) return;
  const Place dx = a_.add_tensor(value.source);
  add_repack(a_, {id, value.source}, dy, dx);
  contribute(value.source, dx);
}

}  // namespace convoy::cuda
