// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/forward.hpp"

#include <algorithm>

#include "backend/cuda/kernels/input.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// Blocks of a grid in its second direction, which images lie along.
constexpr Index most_samples = 65535;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

InputStage::Normalise normalise_of(InputSpec::Normalise normalise) {
  switch (normalise) {
    case InputSpec::Normalise::channel:
      return InputStage::Normalise::channel;
    case InputSpec::Normalise::mean_image:
      return InputStage::Normalise::mean_image;
    case InputSpec::Normalise::per_image:
      return InputStage::Normalise::per_image;
  }
  return InputStage::Normalise::channel;
}

}  // namespace

Forward::Forward(Assembler& assembler, Chooser& chooser) : a_(assembler), chooser_(chooser) {
  const std::size_t n = a_.values().size();
  tensors_.values.resize(n);
  tensors_.winners.resize(n);
  tensors_.applies.assign(n, -1);
  tensors_.masks.resize(n);
}

void Forward::run() {
  input();
  if (a_.mode() == Mode::evaluate) evaluation_norms();
  for (std::size_t i = 1; i < a_.values().size(); ++i) {
    const Value& value = a_.values()[i];
    const int id = static_cast<int>(i);
    if (!value.used || tensors_.values[i]) continue;
    switch (value.kind) {
      case ValueKind::input:
      case ValueKind::group:  // where it is first read
        break;
      case ValueKind::repack:
        repack(id);
        break;
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
      case ValueKind::logits:
        loss(id);
        break;
    }
  }
}

void Forward::input() {
  const Extent& extent = a_.value(0).extent;
  const InputSpec& source = a_.compile().input;
  if (extent.c > 8 || source.channels > 4)
    fail(Exit::device, "images of {} channels are not possible on CUDA (it takes 1 to 4)", source.channels);
  if (a_.samples() > most_samples)
    fail(Exit::device,
         "batches of {} images are not possible on CUDA ({} at most); lower --batch-size or --eval-batch-size",
         a_.samples(), most_samples);
  InputStage stage{.storage = a_.storage(),
                   .normalise = normalise_of(source.normalise),
                   .samples = static_cast<int>(a_.samples()),
                   .source_height = static_cast<int>(source.height),
                   .source_width = static_cast<int>(source.width),
                   .height = static_cast<int>(extent.h),
                   .width = static_cast<int>(extent.w),
                   .channels = static_cast<int>(source.channels),
                   .stored_channels = static_cast<int>(extent.c)};
  std::copy(source.mean.begin(), source.mean.end(), stage.mean);
  std::copy(source.std.begin(), source.std.end(), stage.std);
  const Place x = tensors_.values[0] = a_.add_tensor(0);
  const Place moments = stage.normalise == InputStage::Normalise::per_image ? a_.add_floats(2 * a_.samples()) : Place{};
  a_.add_step("input", {0}, {}, {x, moments}, [=](const Frame& frame) {
    InputStage now = stage;
    now.mean_image = frame.mean_image;
    now.rows = frame.rows;
    now.feed = frame.feed;
    now.moments = frame.floats(moments);
    now.x = frame.at(x);
    check(make_input(now, frame.stream), "the input stage");
  });
  if (needs_statistics(0)) reduce_statistics(0);
}

void Forward::evaluation_norms() {
  Recipe& recipe = a_.recipe();
  for (std::size_t i = 0; i < a_.lowering().norms.size(); ++i) {
    const int id = static_cast<int>(i);
    const Norm& norm = a_.norm(id);
    if (norm.group < 0 || !a_.value(norm.group).used) continue;
    const NormStatistics& statistics = a_.plan().table.norms[at(norm.table)];
    const auto& rows = a_.plan().table.rows;
    const auto& attributes = std::get<BatchNorm>(a_.plan().graph.nodes[at(norm.node)].attributes);
    recipe.evaluation_norms.push_back({.gamma = rows[at(norm.scale)].range.begin,
                                       .beta = rows[at(norm.shift)].range.begin,
                                       .mean = statistics.mean.begin,
                                       .variance = statistics.variance.begin,
                                       .channels = attributes.channels,
                                       .epsilon = attributes.epsilon,
                                       .scale = a_.vector(id, Vector::scale),
                                       .shift = a_.vector(id, Vector::shift),
                                       .low_scale = a_.vector(id, Vector::low_scale),
                                       .low_shift = a_.vector(id, Vector::low_shift)});
  }
  if (recipe.evaluation_norms.empty()) return;
  a_.add_step("norms from running statistics", {}, {}, {},
              [count = static_cast<int>(recipe.evaluation_norms.size()), low = a_.storage()](const Frame& frame) {
                check(finish_evaluation(frame.norms, count, frame.set, low, frame.stream),
                      "the norms of an evaluation");
              });
}

bool Forward::needs_statistics(int id) const { return a_.mode() != Mode::evaluate && !a_.value(id).norms.empty(); }

void Forward::convolution(int id) {
  const Value& value = a_.value(id);
  const std::size_t begin = a_.steps();
  const Value& source = a_.value(value.source);
  const bool statistics = needs_statistics(id);
  std::optional<Chosen> chosen;
  GraphCall call;
  const auto bordered = [&](Border border) {
    const int norm = source.terms[0].norm;
    call.places.emplace_back(Role::x, ensure(source.terms[0].value));
    call.places.emplace_back(Role::scale, a_.vector(norm, Vector::low_scale));
    call.places.emplace_back(Role::shift, a_.vector(norm, Vector::low_shift));
    if (border == Border::norm) return;
    call.places.emplace_back(Role::other, ensure(source.terms[1].value));
    if (border == Border::join_norms) {
      call.places.emplace_back(Role::scale2, a_.vector(source.terms[1].norm, Vector::low_scale));
      call.places.emplace_back(Role::shift2, a_.vector(source.terms[1].norm, Vector::low_shift));
    }
    const Place z = tensors_.values[at(value.source)] = a_.add_tensor(value.source);
    call.places.emplace_back(Role::z, z);
    call.nodes = source.nodes;
  };
  const bool stored = static_cast<bool>(tensors_.values[at(value.source)]);
  const Border border = stored ? Border::none : border_of(source, value);
  if (joins(border) || (border == Border::norm && chooser_.in_prologues(value.source))) {
    chosen = chooser_.forward(id, border, statistics);
    if (chosen) bordered(border);
  }
  if (!chosen) {
    call.places.emplace_back(Role::x, ensure(value.source));
    chosen = chooser_.forward(id, Border::none, statistics);
  }
  const Place y = tensors_.values[at(id)] = a_.add_tensor(id);
  const Place sum = chosen->form.statistics ? a_.add_floats(value.extent.c) : Place{};
  const Place squares = chosen->form.statistics ? a_.add_floats(value.extent.c) : Place{};
  call.what = "convolution";
  call.form = chosen->form;
  call.operation = chosen->operation;
  call.places.emplace_back(Role::w, a_.filter(value.window.weight));
  call.places.emplace_back(Role::y, y);
  call.places.emplace_back(Role::sum, sum);
  call.places.emplace_back(Role::squares, squares);
  call.nodes.insert(call.nodes.end(), value.nodes.begin(), value.nodes.end());
  a_.add_graph(std::move(call));
  if (statistics && chosen->form.statistics) finish_norms(id, sum, squares, 1, 0);
  if (statistics && !chosen->form.statistics) reduce_statistics(id);
  a_.tag(begin, value.source);
}

void Forward::reduce_statistics(int id) {
  const Index rows = a_.rows(id), channels = a_.value(id).extent.c;
  const int blocks = reduction_blocks(rows, channels);
  const Place x = tensors_.values[at(id)], partial = a_.add_floats(blocks * 2 * channels);
  StatisticsReduce reduce{.storage = a_.storage(), .rows = rows, .channels = channels};
  a_.add_step("statistics", a_.value(id).nodes, {x}, {partial}, [=](const Frame& frame) {
    StatisticsReduce now = reduce;
    now.x = frame.at(x);
    now.partial = frame.floats(partial);
    check(cuda::reduce_statistics(now, frame.stream), "the statistics of a batch");
  });
  finish_norms(id, partial, {partial.base, partial.buffer, partial.offset + 4 * channels}, blocks, 2 * channels);
}

void Forward::finish_norms(int id, Place sums, Place squares, Index parts, Index stride) {
  const Value& value = a_.value(id);
  const Index channels = value.extent.c;
  if (a_.synchronised()) {
    for (const int norm : value.norms) {
      const Place out0 = a_.exchanged(norm, 0), out1 = a_.exchanged(norm, 1);
      a_.add_step("share of statistics", {a_.norm(norm).node}, {sums, squares}, {}, [=](const Frame& frame) {
        const SumsFold fold{.sums = {{frame.floats(sums), frame.floats(squares)}, parts, stride},
                            .terms = 2,
                            .channels = channels,
                            .out = {frame.floats(out0), frame.floats(out1)}};
        check(fold_sums(fold, frame.stream), "the share of a batch's statistics");
      });
    }
    for (const int norm : value.norms) {
      const Range range = a_.exchange(norm);
      a_.block({range.begin, range.count / 2});
    }
  }
  for (const int id_of_norm : value.norms) {
    const Norm& norm = a_.norm(id_of_norm);
    const auto& attributes = std::get<BatchNorm>(a_.plan().graph.nodes[at(norm.node)].attributes);
    const NormStatistics& table = a_.plan().table.norms[at(norm.table)];
    const NormFinish finish{
        .channels = channels, .pixels = value.extent.pixels(), .epsilon = attributes.epsilon, .low = a_.storage()};
    const bool exchanged = a_.synchronised();
    const Place from0 = exchanged ? a_.exchanged(id_of_norm, 0) : sums;
    const Place from1 = exchanged ? a_.exchanged(id_of_norm, 1) : squares;
    const Place gamma = a_.parameter(norm.scale), beta = a_.parameter(norm.shift);
    const NormPlaces vectors = a_.vectors(
        id_of_norm, {Vector::mean, Vector::rstd, Vector::scale, Vector::shift, Vector::low_scale, Vector::low_shift});
    const Range mean = table.mean, variance = table.variance;
    const Index tail = a_.plan().table.statistics.begin;
    a_.add_step("norm", {norm.node}, {from0, from1}, {}, [=](const Frame& frame) {
      NormFinish now = finish;
      now.sums = {{frame.floats(from0), frame.floats(from1)}, exchanged ? 1 : parts, stride};
      now.gamma = frame.floats(gamma);
      now.beta = frame.floats(beta);
      now.feed = frame.feed;
      if (frame.gradients != nullptr) {
        now.tail_mean = frame.gradients + tail + mean.begin;
        now.tail_variance = frame.gradients + tail + variance.begin;
      }
      now.vectors = vectors.at(frame);
      check(finish_statistics(now, frame.stream), "the statistics of a batch norm");
    });
  }
}

Place Forward::ensure(int id) {
  const Value& value = a_.value(id);
  Place& stored = tensors_.values[at(id)];
  if (stored) return stored;
  require(value.kind == ValueKind::group, "an operation is read before it ran");
  return apply(id);
}

Place Forward::apply(int id) {
  const Value& value = a_.value(id);
  const Term first = value.terms[0];
  const Term second = value.joins() ? value.terms[1] : Term{};
  const Place x = ensure(first.value), other = value.joins() ? ensure(second.value) : Place{};
  const Place z = tensors_.values[at(id)] = a_.add_tensor(id);
  const Place scale = first.norm >= 0 ? a_.vector(first.norm, Vector::scale) : Place{};
  const Place shift = first.norm >= 0   ? a_.vector(first.norm, Vector::shift)
                      : first.bias >= 0 ? a_.parameter(first.bias)
                                        : Place{};
  const Place scale2 = second.norm >= 0 ? a_.vector(second.norm, Vector::scale) : Place{};
  const Place shift2 = second.norm >= 0 ? a_.vector(second.norm, Vector::shift) : Place{};
  const Apply apply{.storage = a_.storage(), .rows = a_.rows(id), .channels = value.extent.c, .act = value.act};
  // A join's backward pass may want a mask of it (Backward::mask_of): the place is filled in then.
  const auto mask = std::make_shared<Place>();
  a_.add_step("apply", value.nodes, {x, other}, {z}, [=](const Frame& frame) {
    Apply now = apply;
    now.x = frame.at(x);
    now.scale = frame.floats(scale);
    now.shift = frame.floats(shift);
    now.other = frame.at(other);
    now.scale2 = frame.floats(scale2);
    now.shift2 = frame.floats(shift2);
    now.z = frame.at(z);
    now.mask = static_cast<std::uint8_t*>(frame.at(*mask));
    check(cuda::apply(now, frame.stream), "a pointwise layer");
  });
  tensors_.applies[at(id)] = static_cast<int>(a_.steps()) - 1;
  tensors_.masks[at(id)] = mask;
  if (needs_statistics(id)) reduce_statistics(id);
  return z;
}

}  // namespace convoy::cuda
