// SPDX-License-Identifier: Apache-2.0
// Gradients of groups by kernels of ours: through the curve, the norms' sums, and on to the terms.
#include <algorithm>
#include <utility>

#include "backend/cuda/kernels/pool_gradient.hpp"
#include "backend/cuda/lowering/backward.hpp"
#include "backend/cuda/lowering/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

MaskedGradient Backward::Gradient::at(const Frame& frame) const {
  return {.act = act,
          .dz = frame.at(dz),
          .dz_more = frame.at(more),
          .z = frame.at(z),
          .mask = static_cast<const std::uint8_t*>(frame.at(mask)),
          .scale = frame.floats(scale),
          .shift = frame.floats(shift),
          .scale2 = frame.floats(scale2),
          .shift2 = frame.floats(shift2)};
}

Backward::Gradient Backward::stored_gradient(Place g) {
  Gradient gradient;
  gradient.reads = {g};
  gradient.dz = g;
  return gradient;
}

/// A bit an element, written by the apply of the forward pass: a sixteenth of reading z again.
Place Backward::mask_of(int id) {
  const Value& value = a_.value(id);
  if (value.act.curve != Curve::relu || value.extent.c % 8 != 0 || !tensors_.masks[at(id)]) return {};
  Place& mask = *tensors_.masks[at(id)];
  if (mask) return mask;
  mask = a_.place(a_.add_buffer(BufferKind::activation, a_.samples() * value.extent.count() / 8));
  a_.step(at(tensors_.applies[at(id)])).touches.push_back({mask.buffer, Access::write});
  return mask;
}

Backward::Gradient Backward::gradient_of(int id, bool reads_terms) {
  const Value& value = a_.value(id);
  const std::vector<Place> dz = contributions(id, 2);
  Gradient from;
  from.reads = dz;
  from.dz = dz[0];
  if (dz.size() > 1) from.more = dz[1];
  from.act = value.act;
  if (value.act.curve == Curve::none) return from;
  const bool only_norms =
      std::all_of(value.terms.begin(), value.terms.end(), [](const Term& term) { return term.norm >= 0; });
  if (reads_terms && only_norms) {
    from.scale = a_.vector(value.terms[0].norm, Vector::scale);
    from.shift = a_.vector(value.terms[0].norm, Vector::shift);
    if (value.joins()) {
      from.scale2 = a_.vector(value.terms[1].norm, Vector::scale);
      from.shift2 = a_.vector(value.terms[1].norm, Vector::shift);
    }
    return from;
  }
  if (const Place mask = mask_of(id)) {
    from.mask = mask;
    from.reads.push_back(mask);
    return from;
  }
  from.z = tensors_.values[at(id)];
  require(static_cast<bool>(from.z), "a curve's derivative without its output");
  from.reads.push_back(from.z);
  return from;
}

void Backward::group(int id) {
  const Value& value = a_.value(id);
  const bool has_norms = value.terms[0].norm >= 0;
  const bool pure = !has_norms && value.act.curve == Curve::none && contributions_[at(id)].size() == 1;
  if (pure) return hand_on(id, contributions(id, 1).front());
  const bool shortcut = value.joins() && value.terms[1].norm < 0 && a_.value(value.terms[1].value).wants_gradient;
  if (!has_norms) {
    const Gradient from = gradient_of(id, false);
    const Place g = a_.add_tensor(id);
    const BackwardApply apply{.storage = a_.storage(), .rows = a_.rows(id), .channels = value.extent.c};
    Step& step = a_.add_step("apply gradient", value.nodes, {}, {g}, [=](const Frame& frame) {
      BackwardApply now = apply;
      now.from = from.at(frame);
      now.dx = frame.at(g);
      check(apply_backward(now, frame.stream), "the gradient of a pointwise layer");
    });
    for (const Place& place : from.reads) step.touches.push_back({place.buffer, Access::read});
    return hand_on(id, g);
  }
  const bool two_norms = value.joins() && value.terms[1].norm >= 0;
  const Gradient from = gradient_of(id, !value.joins() || two_norms);
  const bool wants_dx = a_.value(value.terms[0].value).wants_gradient;
  // A shortcut wants g as a tensor; else it pays where the second pass would read more than two in its place.
  const bool writes_g = shortcut || (wants_dx && from.reads.size() > 2);
  const Place g = writes_g ? a_.add_tensor(id) : Place{};
  reduce(id, from, g);
  if (g) return hand_on(id, g);
  apply(id, from);
  done_[at(id)] = true;
}

void Backward::reduce(int id, const Gradient& from, Place g) {
  const Value& value = a_.value(id);
  const bool two = value.joins() && value.terms[1].norm >= 0;
  const int terms = two ? 3 : 2;
  const Index channels = value.extent.c;
  const int blocks = reduction_blocks(a_.rows(id), channels);
  const Place partial = a_.add_floats(Index{blocks} * terms * channels);
  const Place x = tensors_.values[at(value.terms[0].value)];
  // The second term is read for its own sums, or for the curve's derivative computed again.
  const Place other = two ? tensors_.values[at(value.terms[1].value)] : Place{};
  const Place mean = a_.vector(value.terms[0].norm, Vector::mean);
  const Place mean2 = two ? a_.vector(value.terms[1].norm, Vector::mean) : Place{};
  const BackwardReduce reduce{.storage = a_.storage(), .rows = a_.rows(id), .channels = channels};
  Step& step = a_.add_step("norm sums", value.nodes, {x, other}, {partial, g}, [=](const Frame& frame) {
    BackwardReduce now = reduce;
    now.from = from.at(frame);
    now.x = frame.at(x);
    now.other = frame.at(other);
    now.mean = frame.floats(mean);
    now.mean2 = frame.floats(mean2);
    now.g = frame.at(g);
    now.partial = frame.floats(partial);
    check(reduce_backward(now, frame.stream), "the sums of a batch norm's gradient");
  });
  for (const Place& place : from.reads) step.touches.push_back({place.buffer, Access::read});
  std::vector<std::pair<int, Sums>> norms;
  for (std::size_t i = 0; i < (two ? 2U : 1U); ++i) {
    Place products = partial;
    products.offset += 4 * static_cast<Index>(i + 1) * channels;
    norms.push_back(
        {value.terms[i].norm, {.dbeta = partial, .products = products, .parts = blocks, .stride = terms * channels}});
  }
  finish_norms(norms);
}

void Backward::finish_norms(const std::vector<std::pair<int, Sums>>& norms) {
  std::vector<std::pair<NodeId, std::function<void(const Frame&)>>> waiting;
  for (const auto& [id, sums] : norms) {
    const Norm& norm = a_.norm(id);
    const Index channels = a_.value(norm.value).extent.c;
    const Place rstd = a_.vector(id, Vector::rstd);
    const Place dgamma = a_.trained_gradient(norm.scale), dbeta = a_.trained_gradient(norm.shift);
    const Place exchange0 = a_.synchronised() ? a_.exchanged(id, 2) : Place{};
    const Place exchange1 = a_.synchronised() ? a_.exchanged(id, 3) : Place{};
    const auto gradients = [=, sums = sums](const Frame& frame) {
      return NormGradients{.sums = {{frame.floats(sums.dbeta), frame.floats(sums.products)}, sums.parts, sums.stride},
                           .products = sums.kind,
                           .channels = channels,
                           .rstd = frame.floats(rstd),
                           .loss_scale = frame.loss_scale,
                           .dgamma = frame.floats(dgamma),
                           .dbeta = frame.floats(dbeta),
                           .exchange_dbeta = frame.floats(exchange0),
                           .exchange_dgamma = frame.floats(exchange1)};
    };
    const BackwardFinish finish{.products = a_.synchronised() ? Products::normalised : sums.kind,
                                .channels = channels,
                                .pixels = a_.value(norm.value).extent.pixels()};
    const Place gamma = a_.parameter(norm.scale);
    const NormPlaces vectors = a_.vectors(id, {Vector::mean, Vector::rstd, Vector::a, Vector::b, Vector::d});
    const auto finished = [=](const Frame& frame, const PartialSums& from) {
      BackwardFinish now = finish;
      now.sums = from;
      now.gamma = frame.floats(gamma);
      now.feed = frame.feed;
      now.vectors = vectors.at(frame);
      return now;
    };
    const bool synchronised = a_.synchronised();
    a_.add_step("norm gradients", {norm.node}, {sums.dbeta, sums.products}, {}, [=](const Frame& frame) {
      const NormGradients now = gradients(frame);
      check(synchronised ? finish_gradients(now, frame.stream)
                         : finish_backward(finished(frame, now.sums), now, frame.stream),
            "the gradients of a batch norm");
    });
    for (const int row : {norm.scale, norm.shift})
      if (a_.trains(row)) a_.finish_row(row);
    if (!synchronised) continue;
    waiting.push_back({norm.node, [=](const Frame& frame) {
                         const PartialSums shared{{frame.floats(exchange0), frame.floats(exchange1)}, 1, 0};
                         check(finish_backward(finished(frame, shared), frame.stream), "a batch norm's gradient");
                       }});
  }
  if (!a_.synchronised()) return;
  for (const auto& [id, sums] : norms) {
    const Range range = a_.exchange(id);
    a_.block({range.begin + range.count / 2, range.count / 2});
  }
  for (auto& [node, run] : waiting) a_.add_step("norm gradients of all ranks", {node}, {}, {}, std::move(run));
}

void Backward::apply(int id, const Gradient& from) {
  const Value& value = a_.value(id);
  const bool two = value.joins() && value.terms[1].norm >= 0;
  const bool wants[] = {a_.value(value.terms[0].value).wants_gradient,
                        two && a_.value(value.terms[1].value).wants_gradient};
  // A frozen second branch leaves its own tensor out; a frozen first one is computed and dropped.
  if (!wants[0] && !wants[1]) return;
  const int first = value.terms[0].norm, second = wants[1] ? value.terms[1].norm : -1;
  const bool recomputes = static_cast<bool>(from.scale2);
  const Place x = tensors_.values[at(value.terms[0].value)];
  const Place other = wants[1] || recomputes ? tensors_.values[at(value.terms[1].value)] : Place{};
  const Place dx = a_.add_tensor(id), dx2 = wants[1] ? a_.add_tensor(id) : Place{};
  const NormPlaces v = a_.vectors(first, {Vector::a, Vector::b, Vector::d});
  const NormPlaces v2 = second >= 0 ? a_.vectors(second, {Vector::a, Vector::b, Vector::d}) : NormPlaces{};
  const BackwardApply apply{.storage = a_.storage(), .rows = a_.rows(id), .channels = value.extent.c};
  Step& step = a_.add_step("apply gradient", value.nodes, {x, other}, {dx, dx2}, [=](const Frame& frame) {
    BackwardApply now = apply;
    now.from = from.at(frame);
    now.x = frame.at(x);
    now.other = frame.at(other);
    now.a = frame.floats(v[Vector::a]);
    now.b = frame.floats(v[Vector::b]);
    now.d = frame.floats(v[Vector::d]);
    now.a2 = frame.floats(v2[Vector::a]);
    now.b2 = frame.floats(v2[Vector::b]);
    now.d2 = frame.floats(v2[Vector::d]);
    now.dx = frame.at(dx);
    now.dx2 = frame.at(dx2);
    check(apply_backward(now, frame.stream), "the gradient of a batch norm");
  });
  for (const Place& place : from.reads) step.touches.push_back({place.buffer, Access::read});
  if (wants[0]) contribute(value.terms[0].value, dx);
  if (wants[1]) contribute(value.terms[1].value, dx2);
}

void Backward::pooled_norm(int id) {
  const Value& value = a_.value(id);
  const int source = value.source;
  const Term term = a_.value(source).terms[0];
  const std::vector<Place> dy = contributions(id, 2);
  const Place first = dy[0], more = dy.size() > 1 ? dy[1] : Place{}, winner = tensors_.winners[at(id)];
  const Place x = tensors_.values[at(term.value)];
  const Place scale = a_.vector(term.norm, Vector::scale), shift = a_.vector(term.norm, Vector::shift);
  const PooledGradient gradient{.shape = pool_shape(a_, id), .act = a_.value(source).act};
  const auto from = [=](const Frame& frame) {
    PooledGradient now = gradient;
    now.dy = frame.at(first);
    now.dy_more = frame.at(more);
    now.winner = static_cast<const std::uint8_t*>(frame.at(winner));
    now.x = frame.at(x);
    now.scale = frame.floats(scale);
    now.shift = frame.floats(shift);
    return now;
  };
  std::vector<NodeId> nodes = a_.value(source).nodes;
  nodes.insert(nodes.end(), value.nodes.begin(), value.nodes.end());
  const Index channels = value.extent.c;
  const int blocks = reduction_blocks(a_.rows(source), channels);
  const Place partial = a_.add_floats(Index{blocks} * 2 * channels), mean = a_.vector(term.norm, Vector::mean);
  a_.add_step("norm sums of a max pool", nodes, {first, more, winner, x}, {partial}, [=](const Frame& frame) {
    const PooledReduce now{.from = from(frame), .mean = frame.floats(mean), .partial = frame.floats(partial)};
    check(reduce_pooled(now, frame.stream), "the sums of a pooled batch norm's gradient");
  });
  Place products = partial;
  products.offset += 4 * channels;
  finish_norms({{term.norm, {.dbeta = partial, .products = products, .parts = blocks, .stride = 2 * channels}}});
  done_[at(source)] = true;
  missing_[at(source)] = 0;
  if (!a_.value(term.value).wants_gradient) return;
  const Place dx = a_.add_tensor(source);
  const NormPlaces v = a_.vectors(term.norm, {Vector::a, Vector::b, Vector::d});
  a_.add_step("apply gradient of a max pool", nodes, {first, more, winner, x}, {dx}, [=](const Frame& frame) {
    const PooledApply now{.from = from(frame),
                          .a = frame.floats(v[Vector::a]),
                          .b = frame.floats(v[Vector::b]),
                          .d = frame.floats(v[Vector::d]),
                          .dx = frame.at(dx)};
    check(apply_pooled(now, frame.stream), "the gradient of a pooled batch norm");
  });
  contribute(term.value, dx);
}

void Backward::hand_on(int id, Place g) {
  const Value& value = a_.value(id);
  done_[at(id)] = true;
  if (value.terms[0].norm >= 0) {
    apply(id, stored_gradient(g));
    if (value.joins() && value.terms[1].norm < 0 && a_.value(value.terms[1].value).wants_gradient)
      contribute(value.terms[1].value, g);
    return;
  }
  for (const Term& term : value.terms) {
    if (term.bias >= 0) bias_gradient(term.bias, g, id);
    if (a_.value(term.value).wants_gradient) contribute(term.value, g);
  }
}

}  // namespace convoy::cuda
