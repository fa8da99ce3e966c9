// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/batch_norm.hpp"

#include <functional>
#include <utility>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/rules/exchanged_sum.hpp"

namespace convoy::cuda {

void add_statistics(ForwardPass& pass, int id) {
  PlanBuilder& builder = pass.builder;
  const Index rows = builder.rows(id), channels = builder.value(id).layout.c;
  const int blocks = reduction_blocks(rows, channels);
  const BufferRef x = pass.tensor(id).value, partial = builder.add_floats(blocks * 4 * channels);
  const StatisticsReduce reduce{.storage = builder.storage(), .rows = rows, .channels = channels};
  builder.add_step("statistics", builder.value(id).nodes, {x}, {partial}, [=](const LaunchContext& launch) {
    StatisticsReduce now = reduce;
    now.x = launch.at(x);
    now.partial = launch.floats(partial);
    check(reduce_statistics(now, launch.stream), "the statistics of a batch");
  });
  finish_norms(pass, id, {partial, partial.after_floats(channels), 2 * Index{blocks}, 2 * channels});
}

void finish_norms(ForwardPass& pass, int id, const ValueSums& from) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const Index channels = value.layout.c;
  const auto [sums, squares, parts, stride, around_zero] = from;
  // Steps that may recount from x don't count as its readers: they hardly ever are, and what evaluates the norm reads x
  // after them anyway.
  const BufferRef x = around_zero ? pass.tensor(id).value : BufferRef{};
  const Recount recount{.storage = builder.storage(), .rows = builder.rows(id)};
  if (builder.synchronised()) {
    for (const int norm : value.norms) {
      const Range& range = builder.exchange_ranges(norm).forward;
      const SumsFold fold{
          .terms = 2, .channels = channels, .stride = range.count / (2 * exchanged_parts), .recount = recount};
      const BufferRef out0 = builder.exchanged(range, 0), out1 = builder.exchanged(range, 1);
      builder.add_step(
          "share of statistics", {builder.norm(norm).node}, {sums, squares}, {},
          [=, sums = sums, squares = squares, parts = parts, stride = stride](const LaunchContext& launch) {
            SumsFold now = fold;
            now.recount.x = launch.at(x);
            now.sums = {{launch.floats(sums), launch.floats(squares)}, parts, stride};
            now.out[0] = launch.floats(out0);
            now.out[1] = launch.floats(out1);
            check(fold_sums(now, launch.stream), "the share of a batch's statistics");
          });
    }
    for (const int norm : value.norms) builder.exchange(builder.exchange_ranges(norm).forward);
  }
  for (const int norm_id : value.norms) {
    const Norm& norm = builder.norm(norm_id);
    const NormStatistics& statistics = builder.statistics(norm);
    const NormFinish finish{.recount = recount,
                            .channels = channels,
                            .pixels = pixels_of(value.layout),
                            .epsilon = builder.attributes<BatchNorm>(norm.node).epsilon,
                            .low = builder.storage()};
    const bool exchanged = builder.synchronised();
    const Range& range = builder.exchange_ranges(norm_id).forward;
    const BufferRef from0 = exchanged ? builder.exchanged(range, 0) : sums;
    const BufferRef from1 = exchanged ? builder.exchanged(range, 1) : squares;
    const BufferRef again = exchanged ? BufferRef{} : x;
    const Index own_parts = exchanged ? exchanged_parts : parts;
    const Index own_stride = exchanged ? range.count / (2 * exchanged_parts) : stride;
    const BufferRef gamma = builder.parameter(norm.scale), beta = builder.parameter(norm.shift);
    const NormRefs vectors =
        builder.vectors(norm_id, {NormVector::mean, NormVector::rstd, NormVector::scale, NormVector::shift,
                                  NormVector::low_scale, NormVector::low_shift});
    const Index tail = builder.plan().table.statistics.begin;
    const Index mean = tail + statistics.mean.begin, variance = tail + statistics.variance.begin;
    builder.add_step("norm", {norm.node}, {from0, from1}, {}, [=](const LaunchContext& launch) {
      NormFinish now = finish;
      now.recount.x = launch.at(again);
      now.sums = {{launch.floats(from0), launch.floats(from1)}, own_parts, own_stride};
      now.gamma = launch.floats(gamma);
      now.beta = launch.floats(beta);
      now.feed = launch.feed;
      if (launch.gradients != nullptr) {
        now.tail_mean = launch.gradients + mean;
        now.tail_variance = launch.gradients + variance;
      }
      now.vectors = vectors.at(launch);
      check(finish_statistics(now, launch.stream), "the statistics of a batch norm");
    });
  }
}

void add_evaluation_norms(ForwardPass& pass) {
  PlanBuilder& builder = pass.builder;
  std::vector<EvaluationNormRefs>& norms = builder.execution().evaluation_norms;
  for (int id = 0; id < builder.norm_count(); ++id) {
    const Norm& norm = builder.norm(id);
    if (norm.group < 0 || !builder.value(norm.group).used) continue;
    if (builder.mode() != Mode::evaluate && !norm.frozen) continue;
    const auto& attributes = builder.attributes<BatchNorm>(norm.node);
    norms.push_back({.gamma = builder.row(norm.scale).range.begin,
                     .beta = builder.row(norm.shift).range.begin,
                     .mean = builder.statistics(norm).mean.begin,
                     .variance = builder.statistics(norm).variance.begin,
                     .channels = attributes.channels,
                     .epsilon = attributes.epsilon,
                     .scale = builder.vector(id, NormVector::scale),
                     .shift = builder.vector(id, NormVector::shift),
                     .low_scale = builder.vector(id, NormVector::low_scale),
                     .low_shift = builder.vector(id, NormVector::low_shift)});
  }
  if (norms.empty()) return;
  builder.add_step("norms from running statistics", {}, {}, {},
                   [count = static_cast<int>(norms.size()), low = builder.storage()](const LaunchContext& launch) {
                     if (launch.norms == nullptr) return;  // kernels are measured without a set
                     check(finish_evaluation(launch.norms, count, launch.set, low, launch.stream),
                           "the norms of an evaluation");
                   });
}

void finish_norms(BackwardPass& pass, const std::vector<NormSums>& norms) {
  PlanBuilder& builder = pass.builder;
  const bool synchronised = builder.synchronised();
  std::vector<std::pair<NodeId, std::function<void(const LaunchContext&)>>> waiting;
  for (const NormSums& sums : norms) {
    const Norm& norm = builder.norm(sums.norm);
    const Layout& layout = builder.value(norm.value).layout;
    const BufferRef rstd = builder.vector(sums.norm, NormVector::rstd);
    const BufferRef dgamma = builder.trained_gradient(norm.scale), dbeta = builder.trained_gradient(norm.shift);
    const Range& range = builder.exchange_ranges(sums.norm).backward;
    const BufferRef exchange0 = synchronised ? builder.exchanged(range, 0) : BufferRef{};
    const BufferRef exchange1 = synchronised ? builder.exchanged(range, 1) : BufferRef{};
    const auto gradients = [=](const LaunchContext& launch) {
      return NormGradients{.sums = {{launch.floats(sums.dbeta), launch.floats(sums.products)}, sums.parts, sums.stride},
                           .products = sums.kind,
                           .channels = layout.c,
                           .rstd = launch.floats(rstd),
                           .loss_scale = launch.loss_scale,
                           .dgamma = launch.floats(dgamma),
                           .dbeta = launch.floats(dbeta),
                           .exchange_dbeta = launch.floats(exchange0),
                           .exchange_dgamma = launch.floats(exchange1)};
    };
    const BackwardFinish finish{
        .products = synchronised ? Products::normalised : sums.kind, .channels = layout.c, .pixels = pixels_of(layout)};
    const BufferRef gamma = builder.parameter(norm.scale);
    const NormRefs vectors =
        builder.vectors(sums.norm, {NormVector::mean, NormVector::rstd, NormVector::a, NormVector::b, NormVector::d});
    const auto finished = [=](const LaunchContext& launch, const PartialSums& from) {
      BackwardFinish now = finish;
      now.sums = from;
      now.gamma = launch.floats(gamma);
      now.feed = launch.feed;
      now.vectors = vectors.at(launch);
      return now;
    };
    builder.add_step("norm gradients", {norm.node}, {sums.dbeta, sums.products}, {}, [=](const LaunchContext& launch) {
      const NormGradients now = gradients(launch);
      check(synchronised ? finish_gradients(now, launch.stream)
                         : finish_backward(finished(launch, now.sums), now, launch.stream),
            "the gradients of a batch norm");
    });
    for (const int row : {norm.scale, norm.shift})
      if (builder.trains(row)) builder.finish_row(row);
    if (!synchronised) continue;
    waiting.push_back({norm.node, [=](const LaunchContext& launch) {
                         const PartialSums shared{{launch.floats(exchange0), launch.floats(exchange1)}, 1, 0};
                         check(finish_backward(finished(launch, shared), launch.stream), "a batch norm's gradient");
                       }});
  }
  if (!synchronised) return;
  for (const NormSums& sums : norms) builder.exchange(builder.exchange_ranges(sums.norm).backward);
  for (auto& [node, run] : waiting) builder.add_step("norm gradients of all ranks", {node}, {}, {}, std::move(run));
}

}  // namespace convoy::cuda
