// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/loss.hpp"

#include <utility>
#include <vector>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"

namespace convoy::cuda {

void forward(ForwardPass& pass, int id, const Loss& attributes) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const Term term = value.terms[0];
  const BufferRef raw = pass.read(term.value);
  const Index classes = value.layout.c;
  ExecutionPlan& execution = builder.execution();
  const bool adds = execution.losses >= 0, counts = id + 1 == builder.value_count();
  const int made =
      builder.add_buffer(counts ? BufferKind::fixed : BufferKind::channels, builder.samples() * classes * 4);
  if (counts) execution.logits = made;
  if (!adds) execution.losses = builder.add_buffer(BufferKind::fixed, builder.samples() * 4);
  const BufferRef logits = builder.place(made), losses = builder.place(execution.losses);
  const BufferRef bias = term.bias >= 0 ? builder.parameter(term.bias) : BufferRef{};
  const bool training = builder.training();
  const BufferRef hits = builder.place(builder.add_buffer(BufferKind::channels, builder.samples()));
  if (training && value.wants_gradient) pass.tensor(id).dlogits = builder.add_tensor(term.value);
  const BufferRef dlogits = pass.tensor(id).dlogits;
  const SoftmaxLoss loss{.samples = static_cast<int>(builder.samples()),
                         .classes = static_cast<int>(classes),
                         .topk = builder.compile().topk,
                         .smoothing = attributes.label_smoothing,
                         .weight = attributes.weight,
                         .adds = adds,
                         .stored_classes = classes,
                         .storage = builder.storage()};
  const Index arrivals = builder.add_arrivals(1);
  std::vector<NodeId> nodes = builder.value(term.value).nodes;
  nodes.push_back(value.node);
  builder.add_step("loss", std::move(nodes), {raw, adds ? losses : BufferRef{}}, {logits, losses, hits, dlogits},
                   [=](const LaunchContext& launch) {
                     SoftmaxLoss now = loss;
                     now.raw = launch.at(raw);
                     now.bias = launch.floats(bias);
                     now.logits = launch.floats(logits);
                     now.arrivals = launch.arrivals + arrivals;
                     now.rows = launch.rows;
                     now.feed = launch.feed;
                     now.loss = launch.floats(losses);
                     now.hits = static_cast<std::uint8_t*>(launch.at(hits));
                     now.dlogits = launch.at(dlogits);
                     now.loss_scale = launch.loss_scale;
                     now.class_weights = launch.class_weights;
                     now.counters = counts ? launch.counters : nullptr;
                     now.worst = training ? launch.worst : nullptr;
                     check(softmax_cross_entropy(now, launch.stream), "the loss");
                   });
}

void backward(BackwardPass& pass, int id, const Loss&) {
  const Term term = pass.builder.value(id).terms[0];
  const BufferRef dlogits = pass.forward.tensor(id).dlogits;
  if (term.bias >= 0) add_bias_gradient(pass, term.bias, dlogits, term.value);
  if (pass.wants_gradient(term.value)) pass.contribute(term.value, dlogits);
}

}  // namespace convoy::cuda
