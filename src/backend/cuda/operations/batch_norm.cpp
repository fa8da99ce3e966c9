// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/batch_norm.hpp"

#include <functional>
#include <utility>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "backend/rules/exchanged_sum.hpp"

namespace convoy::cuda {

namespace {

/// What a norm's kernels want of its sums, which the caller adds.
std::function<NormFinish(const LaunchContext&)> finish_of(PlanBuilder& builder, int norm_id) {
  const Norm& norm = builder.norm(norm_id);
  const NormStatistics& statistics = builder.statistics(norm);
  const Layout& layout = builder.value(norm.value).layout;
  const NormFinish finish{.channels = layout.c,
                          .pixels = pixels_of(layout),
                          .epsilon = builder.attributes<BatchNorm>(norm.node).epsilon,
                          .low = builder.storage()};
  const BufferRef gamma = builder.parameter(norm.scale), beta = builder.parameter(norm.shift);
  const NormRefs vectors = builder.vectors(norm_id, {NormVector::mean, NormVector::rstd, NormVector::scale,
                                                     NormVector::shift, NormVector::low_scale, NormVector::low_shift});
  const Index tail = builder.plan().table.statistics.begin;
  const Index mean = tail + statistics.mean.begin, variance = tail + statistics.variance.begin;
  return [=](const LaunchContext& launch) {
    NormFinish now = finish;
    now.gamma = launch.floats(gamma);
    now.beta = launch.floats(beta);
    now.feed = launch.feed;
    if (launch.gradients != nullptr) {
      now.tail_mean = launch.gradients + mean;
      now.tail_variance = launch.gradients + variance;
    }
    now.vectors = vectors.at(launch);
    return now;
  };
}

}  // namespace

void add_statistics(ForwardPass& pass, int id) {
  PlanBuilder& builder = pass.builder;
  const Value& value = builder.value(id);
  const Index rows = builder.rows(id), channels = value.layout.c;
  const bool finishes = value.norms.size() == 1 && !builder.synchronised();
  const BufferRef x = pass.tensor(id).value, totals = finishes ? BufferRef{} : builder.add_floats(4 * channels);
  const ReductionRefs place = builder.add_reduction(rows, channels, 2);
  const StatisticsReduce reduce{.storage = builder.storage(), .rows = rows, .channels = channels};
  std::vector<NodeId> nodes = value.nodes;
  std::function<NormFinish(const LaunchContext&)> finish;
  if (finishes) {
    finish = finish_of(builder, value.norms[0]);
    nodes.push_back(builder.norm(value.norms[0]).node);
  }
  builder.add_step("statistics", std::move(nodes), {x}, {place.sums, totals}, [=](const LaunchContext& launch) {
    StatisticsReduce now = reduce;
    now.x = launch.at(x);
    now.place = place.at(launch);
    now.totals = launch.floats(totals);
    if (finish) now.finish = finish(launch);
    check(reduce_statistics(now, launch.stream), "the statistics of a batch");
  });
  if (!finishes) finish_norms(pass, id, {totals, totals.after_floats(channels), 2, 2 * channels});
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
    const bool exchanged = builder.synchronised();
    const Range& range = builder.exchange_ranges(norm_id).forward;
    const BufferRef from0 = exchanged ? builder.exchanged(range, 0) : sums;
    const BufferRef from1 = exchanged ? builder.exchanged(range, 1) : squares;
    const BufferRef again = exchanged ? BufferRef{} : x;
    const Index own_parts = exchanged ? exchanged_parts : parts;
    const Index own_stride = exchanged ? range.count / (2 * exchanged_parts) : stride;
    const auto finish = finish_of(builder, norm_id);
    pass.await_norm(norm_id, {.reads = {from0, from1}, .finish = [=](const LaunchContext& launch) {
                                NormFinish now = finish(launch);
                                now.recount = recount;
                                now.recount.x = launch.at(again);
                                now.sums = {{launch.floats(from0), launch.floats(from1)}, own_parts, own_stride};
                                return now;
                              }});
    if (exchanged) pass.settle({norm_id});  // the stage of the exchange begins with it
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

namespace {

/// What is made from a norm's sums of gradients, which the caller adds: its own gradients, and the factors of dx.
struct GradientEnd {
  std::function<NormGradients(const LaunchContext&)> gradients;
  std::function<BackwardFinish(const LaunchContext&)> factors;
};

GradientEnd gradient_end(PlanBuilder& builder, int norm_id, Products kind) {
  const Norm& norm = builder.norm(norm_id);
  const Layout& layout = builder.value(norm.value).layout;
  const bool synchronised = builder.synchronised();
  const BufferRef rstd = builder.vector(norm_id, NormVector::rstd);
  const BufferRef dgamma = builder.trained_gradient(norm.scale), dbeta = builder.trained_gradient(norm.shift);
  const Range& range = builder.exchange_ranges(norm_id).backward;
  const BufferRef exchange0 = synchronised ? builder.exchanged(range, 0) : BufferRef{};
  const BufferRef exchange1 = synchronised ? builder.exchanged(range, 1) : BufferRef{};
  const BufferRef gamma = builder.parameter(norm.scale);
  const NormRefs vectors =
      builder.vectors(norm_id, {NormVector::mean, NormVector::rstd, NormVector::a, NormVector::b, NormVector::d});
  const BackwardFinish finish{
      .products = synchronised ? Products::normalised : kind, .channels = layout.c, .pixels = pixels_of(layout)};
  return {[=](const LaunchContext& launch) {
            return NormGradients{.products = kind,
                                 .channels = layout.c,
                                 .rstd = launch.floats(rstd),
                                 .loss_scale = launch.loss_scale,
                                 .dgamma = launch.floats(dgamma),
                                 .dbeta = launch.floats(dbeta),
                                 .exchange_dbeta = launch.floats(exchange0),
                                 .exchange_dgamma = launch.floats(exchange1)};
          },
          [=](const LaunchContext& launch) {
            BackwardFinish now = finish;
            now.gamma = launch.floats(gamma);
            now.feed = launch.feed;
            now.vectors = vectors.at(launch);
            return now;
          }};
}

}  // namespace

std::function<GradientSumsEnd(const LaunchContext&)> end_in_reduction(PlanBuilder& builder,
                                                                      const std::vector<int>& norms) {
  std::vector<GradientEnd> ends;
  ends.reserve(norms.size());
  for (const int norm : norms)
    ends.push_back(norm < 0 ? GradientEnd{} : gradient_end(builder, norm, Products::centred));
  return [ends = std::move(ends)](const LaunchContext& launch) {
    GradientSumsEnd end;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (!ends[i].gradients) continue;
      end.gradients[i] = ends[i].gradients(launch);
      end.factors[i] = ends[i].factors(launch);
    }
    return end;
  };
}

void finish_norm_rows(PlanBuilder& builder, int norm) {
  for (const int row : {builder.norm(norm).scale, builder.norm(norm).shift})
    if (builder.trains(row)) builder.finish_row(row);
}

void finish_norms(BackwardPass& pass, const std::vector<NormSums>& norms) {
  PlanBuilder& builder = pass.builder;
  const bool synchronised = builder.synchronised();
  for (const NormSums& sums : norms) {
    const NodeId node = builder.norm(sums.norm).node;
    const GradientEnd end = gradient_end(builder, sums.norm, sums.kind);
    builder.add_step("norm gradients", {node}, {sums.dbeta, sums.products}, {}, [=](const LaunchContext& launch) {
      NormGradients now = end.gradients(launch);
      now.sums = {{launch.floats(sums.dbeta), launch.floats(sums.products)}, 1, 0};
      BackwardFinish factors = end.factors(launch);
      factors.sums = now.sums;
      check(synchronised ? finish_gradients(now, launch.stream) : finish_backward(factors, now, launch.stream),
            "the gradients of a batch norm");
    });
    finish_norm_rows(builder, sums.norm);
  }
  if (!synchronised) return;
  for (const NormSums& sums : norms) builder.exchange(builder.exchange_ranges(sums.norm).backward);
  for (const NormSums& sums : norms) {
    const Range& range = builder.exchange_ranges(sums.norm).backward;
    const BufferRef dbeta = builder.exchanged(range, 0), dgamma = builder.exchanged(range, 1);
    const GradientEnd end = gradient_end(builder, sums.norm, sums.kind);
    builder.add_step("norm gradients of all ranks", {builder.norm(sums.norm).node}, {}, {},
                     [=](const LaunchContext& launch) {
                       BackwardFinish now = end.factors(launch);
                       now.sums = {{launch.floats(dbeta), launch.floats(dgamma)}, 1, 0};
                       check(finish_backward(now, launch.stream), "a batch norm's gradient");
                     });
  }
}

}  // namespace convoy::cuda
