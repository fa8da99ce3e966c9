// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/norms.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/cpu/parallel.hpp"
#include "backend/rules/exchanged_sum.hpp"

namespace convoy::cpu {

Norms::Norms(const Plan& plan, const Lowering& lowering, std::vector<Index> pixels, const ArrayKernels& kernels)
    : kernels_(kernels), synchronised_(plan.sync_bn), tail_(plan.table.statistics) {
  const std::vector<lowering::ExchangeRanges> exchange = lowering::exchange_ranges(plan, lowering);
  for (std::size_t i = 0; i < lowering.norms.size(); ++i) {
    const Norm& norm = lowering.norms[i];
    const NormStatistics& statistics = plan.table.norms[static_cast<std::size_t>(norm.table)];
    const auto& rows = plan.table.rows;
    Item item;
    item.channels = statistics.mean.count;
    item.padded = (item.channels + lanes - 1) / lanes * lanes;
    item.pixels = pixels[i];
    item.epsilon = static_cast<double>(
        std::get<BatchNorm>(plan.graph.nodes[static_cast<std::size_t>(norm.node)].attributes).epsilon);
    item.mean = statistics.mean;
    item.variance = statistics.variance;
    item.exchange = exchange[i];
    const Parameter &scale = rows[static_cast<std::size_t>(norm.scale)],
                    &shift = rows[static_cast<std::size_t>(norm.shift)];
    item.scale = scale.range;
    item.shift = shift.range;
    item.scale_trains = scale.trainable;
    item.shift_trains = shift.trainable;
    floats_ += 7 * item.padded + 4 * 2 * item.padded;
    items_.push_back(item);
  }
}

void Norms::bind(float* memory) {
  std::fill(memory, memory + floats_, 0.0F);
  for (Item& item : items_) {
    NormVectors& v = item.vectors;
    for (float** vector : {&v.mean, &v.rstd, &v.scale, &v.shift, &v.a, &v.b, &v.d}) {
      *vector = memory;
      memory += item.padded;
    }
    for (double** vector : {&v.batch_mean, &v.spread, &v.dshift, &v.dscale}) {
      *vector = reinterpret_cast<double*>(memory);
      memory += 2 * item.padded;
    }
  }
}

void Norms::fold(const float* rows, Index images, Index padded, double* total) const {
  split_units(padded / lanes, images * lanes,
              [&](Index begin, Index end) { kernels_.fold(rows, images, padded, total, begin * lanes, end * lanes); });
}

void Norms::fold_statistics(int norm, const NormStep& step, const double* means, const double* spreads, Index images) {
  Item& item = items_[static_cast<std::size_t>(norm)];
  const NormVectors& v = item.vectors;
  split_units(item.padded / lanes, 2 * images * lanes, [&](Index begin, Index end) {
    kernels_.fold_moments(means, spreads, images, item.padded, static_cast<double>(item.pixels), v.batch_mean, v.spread,
                          begin * lanes, end * lanes);
  });
  if (!synchronised_ || !step.gradients) return;
  float* const exchange = step.gradients + item.exchange.forward.begin;
  const Index stride = align_floats(item.channels);
  for (Index c = 0; c < item.channels; ++c) {
    const double sum = static_cast<double>(images * item.pixels) * v.batch_mean[c];
    write_parts(sum, exchange + c, stride);
    write_parts(v.spread[c] + sum * v.batch_mean[c], exchange + exchanged_parts * stride + c, stride);
  }
}

void Norms::prepare_forward(int norm, const NormStep& step) {
  Item& item = items_[static_cast<std::size_t>(norm)];
  NormVectors& v = item.vectors;
  const bool exchanged = synchronised_ && step.gradients;
  const float* const exchange = exchanged ? step.gradients + item.exchange.forward.begin : nullptr;
  const Index stride = align_floats(item.channels);
  const double count = static_cast<double>(step.shared_samples * item.pixels);
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  for (Index c = 0; c < item.channels; ++c) {
    double mean = v.batch_mean[c], variance = v.spread[c] / count;
    if (exchanged) {
      mean = read_parts(exchange + c, stride) / count;
      const double centred = read_parts(exchange + exchanged_parts * stride + c, stride) / count - mean * mean;
      variance = centred < 0 ? 0 : centred;  // keeps NaN
    }
    const double rstd = 1 / std::sqrt(variance + item.epsilon);
    const double scale = static_cast<double>(step.values[item.scale.begin + c]) * rstd;
    v.mean[c] = static_cast<float>(mean);
    v.rstd[c] = static_cast<float>(rstd);
    v.scale[c] = static_cast<float>(scale);
    v.shift[c] = static_cast<float>(static_cast<double>(step.values[item.shift.begin + c]) - mean * scale);
    if (!step.gradients) continue;
    float* const tail = step.gradients + tail_.begin;
    tail[item.mean.begin + c] = static_cast<float>(step.weight * mean);
    tail[item.variance.begin + c] = static_cast<float>(step.weight * unbiased * variance);
  }
}

void Norms::prepare_evaluation(int norm, const NormStep& step) {
  Item& item = items_[static_cast<std::size_t>(norm)];
  NormVectors& v = item.vectors;
  for (Index c = 0; c < item.channels; ++c) {
    const double mean = static_cast<double>(step.statistics[item.mean.begin + c]);
    const double variance = static_cast<double>(step.statistics[item.variance.begin + c]);
    const double scale = static_cast<double>(step.values[item.scale.begin + c]) / std::sqrt(variance + item.epsilon);
    v.scale[c] = v.a[c] = static_cast<float>(scale);
    v.b[c] = v.d[c] = 0;
    v.shift[c] = static_cast<float>(static_cast<double>(step.values[item.shift.begin + c]) - mean * scale);
  }
}

void Norms::fold_products(int norm, const NormStep& step, const float* sums, const float* products, Index images) {
  Item& item = items_[static_cast<std::size_t>(norm)];
  NormVectors& v = item.vectors;
  fold(sums, images, item.padded, v.dshift);
  fold(products, images, item.padded, v.dscale);
  for (Index c = 0; c < item.channels; ++c) {
    v.dscale[c] *= static_cast<double>(v.rstd[c]);
    if (item.scale_trains) step.gradients[item.scale.begin + c] = static_cast<float>(v.dscale[c]);
    if (item.shift_trains) step.gradients[item.shift.begin + c] = static_cast<float>(v.dshift[c]);
  }
  if (!synchronised_) return;
  const Index stride = align_floats(item.channels);
  float* const exchange = step.gradients + item.exchange.backward.begin;
  for (Index c = 0; c < item.channels; ++c) {
    exchange[c] = static_cast<float>(v.dshift[c]);
    exchange[stride + c] = static_cast<float>(v.dscale[c]);
  }
}

void Norms::prepare_backward(int norm, const NormStep& step) {
  Item& item = items_[static_cast<std::size_t>(norm)];
  NormVectors& v = item.vectors;
  if (synchronised_) {
    const Index stride = align_floats(item.channels);
    const float* const exchange = step.gradients + item.exchange.backward.begin;
    for (Index c = 0; c < item.channels; ++c) {
      v.dshift[c] = static_cast<double>(exchange[c]);
      v.dscale[c] = static_cast<double>(exchange[stride + c]);
    }
  }
  const double count = static_cast<double>(step.shared_samples * item.pixels);
  for (Index c = 0; c < item.channels; ++c) {
    const double rstd = static_cast<double>(v.rstd[c]);
    const double a = static_cast<double>(step.values[item.scale.begin + c]) * rstd;
    const double b = -a * rstd * v.dscale[c] / count;
    v.a[c] = static_cast<float>(a);
    v.b[c] = static_cast<float>(b);
    v.d[c] = static_cast<float>(-a * v.dshift[c] / count - b * static_cast<double>(v.mean[c]));
  }
}

}  // namespace convoy::cpu
