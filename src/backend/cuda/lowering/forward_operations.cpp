// SPDX-License-Identifier: Apache-2.0
// Forward steps of operations that aren't convolutions, and of the loss.
#include <utility>

#include "backend/cuda/kernels/dense.hpp"
#include "backend/cuda/kernels/loss.hpp"
#include "backend/cuda/kernels/pool.hpp"
#include "backend/cuda/lowering/forward.hpp"
#include "backend/cuda/lowering/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

void Forward::pool(int id) {
  const Value& value = a_.value(id);
  const Value& source = a_.value(value.source);
  const auto& pool = std::get<Pool>(a_.plan().graph.nodes[at(value.node)].attributes);
  const PoolShape shape = pool_shape(a_, id);
  if (pool.mode == Pool::Mode::average) {
    const Place x = ensure(value.source), y = tensors_.values[at(id)] = a_.add_tensor(id);
    a_.add_step("average pool", value.nodes, {x}, {y}, [=](const Frame& frame) {
      check(average_pool(shape, frame.at(x), frame.at(y), frame.stream), "average pooling");
    });
  } else {
    // A norm and its curve that nobody else reads are computed on the fly.
    const bool on_the_fly = !tensors_.values[at(value.source)] && source.kind == ValueKind::group &&
                            source.terms.size() == 1 && source.terms[0].norm >= 0 && source.groups.empty() &&
                            source.norms.empty() && source.operations.size() == 1;
    const int norm = on_the_fly ? source.terms[0].norm : -1;
    const Place x = ensure(on_the_fly ? source.terms[0].value : value.source);
    const Place y = tensors_.values[at(id)] = a_.add_tensor(id);
    const Place scale = on_the_fly ? a_.vector(norm, Vector::scale) : Place{};
    const Place shift = on_the_fly ? a_.vector(norm, Vector::shift) : Place{};
    const Activating act = on_the_fly ? source.act : Activating{};
    const bool differentiates = a_.training() && a_.value(value.source).wants_gradient;
    const Index elements = a_.samples() * value.extent.count();
    const Place winner = differentiates ? a_.place(a_.add_buffer(BufferKind::activation, elements)) : Place{};
    tensors_.winners[at(id)] = winner;
    std::vector<NodeId> nodes = on_the_fly ? source.nodes : std::vector<NodeId>{};
    nodes.insert(nodes.end(), value.nodes.begin(), value.nodes.end());
    a_.add_step(on_the_fly ? "apply + max pool" : "max pool", std::move(nodes), {x}, {y, winner},
                [=](const Frame& frame) {
                  const MaxPool now{.shape = shape,
                                    .x = frame.at(x),
                                    .scale = frame.floats(scale),
                                    .shift = frame.floats(shift),
                                    .act = act,
                                    .y = frame.at(y),
                                    .winner = static_cast<std::uint8_t*>(frame.at(winner))};
                  check(max_pool(now, frame.stream), "max pooling");
                });
  }
  if (needs_statistics(id)) reduce_statistics(id);
}

void Forward::global_pool(int id) {
  const Value& value = a_.value(id);
  const Place x = ensure(value.source), y = tensors_.values[at(id)] = a_.add_tensor(id);
  const GlobalPool pool{.storage = a_.storage(),
                        .n = a_.samples(),
                        .pixels = a_.value(value.source).extent.pixels(),
                        .channels = value.extent.c};
  a_.add_step("global pool", value.nodes, {x}, {y}, [=](const Frame& frame) {
    check(cuda::global_pool(pool, frame.at(x), frame.at(y), frame.stream), "global pooling");
  });
  if (needs_statistics(id)) reduce_statistics(id);
}

void Forward::local_response(int id) {
  const Value& value = a_.value(id);
  const Place x = ensure(value.source), y = tensors_.values[at(id)] = a_.add_tensor(id);
  const LocalResponse norm = response_of(a_, id);
  a_.add_step("local response", value.nodes, {x}, {y}, [=](const Frame& frame) {
    check(cuda::local_response(norm, frame.at(x), frame.at(y), frame.stream), "a local response norm");
  });
  if (needs_statistics(id)) reduce_statistics(id);
}

void Forward::dropout(int id) {
  const Value& value = a_.value(id);
  const Place x = ensure(value.source);
  if (a_.training()) {
    const Place y = tensors_.values[at(id)] = a_.add_tensor(id);
    add_dropout(a_, id, x, y);
  } else {
    tensors_.values[at(id)] = x;
  }
  if (needs_statistics(id)) reduce_statistics(id);
}

void Forward::repack(int id) {
  const Value& value = a_.value(id);
  const Place x = ensure(value.source), y = tensors_.values[at(id)] = a_.add_tensor(id);
  add_repack(a_, {value.source, id}, x, y);
  if (needs_statistics(id)) reduce_statistics(id);
}

void Forward::loss(int id) {
  const Value& value = a_.value(id);
  const Term term = value.terms[0];
  const Place raw = ensure(term.value);
  const Index classes = value.extent.c;
  Recipe& recipe = a_.recipe();
  recipe.logits = a_.add_buffer(BufferKind::fixed, a_.samples() * classes * 4);
  recipe.losses = a_.add_buffer(BufferKind::fixed, a_.samples() * 4);
  recipe.worst = a_.add_buffer(BufferKind::fixed, 4);
  const Place logits = a_.place(recipe.logits), losses = a_.place(recipe.losses), worst = a_.place(recipe.worst);
  const Place bias = term.bias >= 0 ? a_.parameter(term.bias) : Place{};
  const RowsCopy copy{.rows = a_.samples(),
                      .columns = classes,
                      .from_columns = classes,
                      .from_storage = a_.storage(),
                      .to_columns = classes,
                      .to_storage = Storage::f32};
  a_.add_step("logits", a_.value(term.value).nodes, {raw}, {logits}, [=](const Frame& frame) {
    RowsCopy now = copy;
    now.from = frame.at(raw);
    now.to = frame.at(logits);
    now.bias = frame.floats(bias);
    check(copy_rows(now, frame.stream), "the logits");
  });
  const bool training = a_.training();
  const Place hits = a_.place(a_.add_buffer(BufferKind::channels, a_.samples()));
  if (training && value.wants_gradient) tensors_.dlogits = a_.add_tensor(term.value);
  const Place dlogits = tensors_.dlogits;
  const SoftmaxLoss loss{.samples = static_cast<int>(a_.samples()),
                         .classes = static_cast<int>(classes),
                         .topk = a_.compile().topk,
                         .smoothing = std::get<Loss>(a_.plan().graph.nodes.back().attributes).label_smoothing,
                         .stored_classes = classes,
                         .storage = a_.storage()};
  a_.add_step("loss", {value.node}, {logits}, {losses, hits, dlogits}, [=](const Frame& frame) {
    SoftmaxLoss now = loss;
    now.logits = frame.floats(logits);
    now.rows = frame.rows;
    now.feed = frame.feed;
    now.loss = frame.floats(losses);
    now.hits = static_cast<std::uint8_t*>(frame.at(hits));
    now.dlogits = frame.at(dlogits);
    now.loss_scale = frame.loss_scale;
    now.tally = frame.tally;
    now.worst = training ? static_cast<std::int32_t*>(frame.at(worst)) : nullptr;
    check(softmax_cross_entropy(now, frame.stream), "the loss");
  });
}

}  // namespace convoy::cuda
