// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/loss.hpp"

#include "backend/cuda/operations/conversion.hpp"
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
  execution.logits = builder.add_buffer(BufferKind::fixed, builder.samples() * classes * 4);
  execution.losses = builder.add_buffer(BufferKind::fixed, builder.samples() * 4);
  execution.worst = builder.add_buffer(BufferKind::fixed, 4);
  const BufferRef logits = builder.place(execution.logits), losses = builder.place(execution.losses);
  const BufferRef worst = builder.place(execution.worst);
  const BufferRef bias = term.bias >= 0 ? builder.parameter(term.bias) : BufferRef{};
  const RowsCopy copy{.rows = builder.samples(),
                      .columns = classes,
                      .from_columns = classes,
                      .from_storage = builder.storage(),
                      .to_columns = classes,
                      .to_storage = Storage::f32};
  builder.add_step("logits", builder.value(term.value).nodes, {raw}, {logits}, [=](const LaunchContext& launch) {
    RowsCopy now = copy;
    now.from = launch.at(raw);
    now.to = launch.at(logits);
    now.bias = launch.floats(bias);
    check(copy_rows(now, launch.stream), "the logits");
  });
  const bool training = builder.training();
  const BufferRef hits = builder.place(builder.add_buffer(BufferKind::channels, builder.samples()));
  if (training && value.wants_gradient) pass.dlogits = builder.add_tensor(term.value);
  const BufferRef dlogits = pass.dlogits;
  const SoftmaxLoss loss{.samples = static_cast<int>(builder.samples()),
                         .classes = static_cast<int>(classes),
                         .topk = builder.compile().topk,
                         .smoothing = attributes.label_smoothing,
                         .stored_classes = classes,
                         .storage = builder.storage()};
  builder.add_step("loss", {value.node}, {logits}, {losses, hits, dlogits}, [=](const LaunchContext& launch) {
    SoftmaxLoss now = loss;
    now.logits = launch.floats(logits);
    now.rows = launch.rows;
    now.feed = launch.feed;
    now.loss = launch.floats(losses);
    now.hits = static_cast<std::uint8_t*>(launch.at(hits));
    now.dlogits = launch.at(dlogits);
    now.loss_scale = launch.loss_scale;
    now.class_weights = launch.class_weights;
    now.counters = launch.counters;
    now.worst = training ? static_cast<std::int32_t*>(launch.at(worst)) : nullptr;
    check(softmax_cross_entropy(now, launch.stream), "the loss");
  });
}

void backward(BackwardPass& pass, int id, const Loss&) {
  const Term term = pass.builder.value(id).terms[0];
  const BufferRef dlogits = pass.forward.dlogits;
  if (term.bias >= 0) add_bias_gradient(pass, term.bias, dlogits, term.value);
  if (pass.wants_gradient(term.value)) pass.contribute(term.value, dlogits);
}

}  // namespace convoy::cuda
