// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/loss.hpp"

#include <limits>

#include "backend/cuda/kernels/gradients.hpp"
#include "backend/cuda/runtime/feed.hpp"
#include "cuda/kernels/bench.hpp"
#include "support/formula.hpp"
#include "support/reference/operations.hpp"

namespace convoy::cuda {
namespace {

struct Case {
  Index samples, valid, classes, stored;
  bool weighted = false;
};

class SoftmaxKernel : public EveryStorage {
 protected:
  struct Buffers {
    SoftmaxLoss loss;
    Counters* counters;
    std::int32_t* worst;
  };
  Buffers make(Bench& bench, const Case& c, const Tensor& logits, const std::vector<SampleSpec>& samples) {
    std::vector<SampleRow> rows;
    rows.reserve(samples.size());
    for (const SampleSpec& sample : samples) rows.push_back(row_of(sample));
    FeedNumbers feed;
    feed.valid = c.valid;
    feed.scale = 0.25F;
    Counters before;
    before.sums[Counter::loss] = 1.5;
    before.sums[Counter::top1] = 2;
    before.sums[Counter::topk] = 3;
    before.samples = 100;
    Buffers b;
    b.counters = bench.put(std::vector<Counters>{before});
    b.worst = bench.put(std::vector<std::int32_t>{no_stage});
    b.loss.samples = static_cast<int>(c.samples);
    b.loss.classes = static_cast<int>(c.classes);
    b.loss.topk = 3;
    b.loss.smoothing = 0.1F;
    Values stored(static_cast<std::size_t>(c.samples * c.stored), 100.0);
    std::vector<float> bias(static_cast<std::size_t>(c.classes));
    for (Index k = 0; k < c.classes; ++k) bias[static_cast<std::size_t>(k)] = static_cast<float>(k % 3) / 4;
    for (Index i = 0; i < c.samples; ++i)
      for (Index k = 0; k < c.classes; ++k)
        stored[static_cast<std::size_t>(i * c.stored + k)] = logits.at(i, k) - static_cast<double>(k % 3) / 4;
    b.loss.raw = bench.elements(stored, storage());
    b.loss.bias = bench.put(bias);
    b.loss.logits = bench.empty<float>(c.samples * c.classes);
    b.loss.arrivals = bench.put(std::vector<unsigned>{0});
    b.loss.rows = bench.put(rows);
    b.loss.feed = bench.put(std::vector<FeedNumbers>{feed});
    b.loss.loss = bench.empty<float>(c.samples);
    b.loss.hits = bench.empty<std::uint8_t>(c.samples);
    b.loss.dlogits = bench.empty_elements(c.samples * c.stored, storage());
    b.loss.stored_classes = c.stored;
    b.loss.storage = storage();
    b.loss.loss_scale = bench.put(std::vector<float>{16});
    b.loss.counters = b.counters;
    b.loss.worst = b.worst;
    return b;
  }
};
CONVOY_EVERY_STORAGE(SoftmaxKernel);

TEST_P(SoftmaxKernel, LossGradientAndCounters) {
  in_all_orders([&] {
    for (const Case& c :
         {Case{5, 5, 10, 16}, {9, 6, 7, 7}, {3, 0, 100, 104}, {300, 299, 33, 40}, {7, 7, 70, 72, true}}) {
      SCOPED_TRACE(c.samples);
      std::vector<float> weights;
      if (c.weighted)
        for (const double weight : formula_values("weights", c.classes, 0.75, 1))
          weights.push_back(static_cast<float>(weight));
      Bench bench;
      Tensor logits = formula_tensor("logits", Tensor(c.samples, c.classes), 4);
      for (double& value : logits.values) value = std::round(value * 8) / 8;  // ties between classes
      const std::vector<SampleSpec> samples = formula_samples("labels", c.samples, c.classes, true);
      Buffers b = make(bench, c, logits, samples);
      if (c.weighted) b.loss.class_weights = bench.put(weights);
      expect_success(softmax_cross_entropy(b.loss, bench.stream()));
      EXPECT_EQ(bench.floats(b.loss.logits, c.samples * c.classes), logits.values) << "eighths are exact";
      EXPECT_EQ(bench.get(b.loss.arrivals, 1)[0], 0U) << "for the next launch";

      Values loss = reference::loss_forward({0.1F}, logits, samples, weights);
      const Tensor gradient = reference::loss_backward({0.1F}, logits, samples, 0.25 * 16, weights);
      Values dlogits(static_cast<std::size_t>(c.samples * c.stored), 0.0);
      double sum = 1.5;
      Index top1 = 2, topk = 3;
      for (Index i = 0; i < c.samples; ++i) {
        const auto row = static_cast<std::size_t>(i);
        if (i >= c.valid) {
          loss[row] = 0;
          continue;
        }
        sum += loss[row];
        Index before = 0;
        const Index label = samples[row].a;
        for (Index k = 0; k < c.classes; ++k) {
          dlogits[static_cast<std::size_t>(i * c.stored + k)] = gradient.at(i, k);
          const double z = logits.at(i, k), own = logits.at(i, label);
          before += z > own || (z == own && k < label) ? 1 : 0;
        }
        top1 += before < 1 ? 1 : 0;
        topk += before < 3 ? 1 : 0;
      }
      expect_close(bench.floats(b.loss.loss, c.samples), loss, 0x1p-22, "loss");
      expect_close(bench.elements(b.loss.dlogits, c.samples * c.stored, storage()), dlogits, epsilon() + 0x1p-22,
                   "dlogits");
      const Counters counters = bench.get(b.counters, 1)[0];
      EXPECT_NEAR(counters.sums[Counter::loss], sum, 1e-6 * sum);
      EXPECT_EQ(counters.sums[Counter::top1], top1);
      EXPECT_EQ(counters.sums[Counter::topk], topk);
      EXPECT_EQ(counters.samples, 100 + c.valid);
      EXPECT_EQ(bench.get(b.worst, 1)[0], no_stage);
    }
  });
}

/// An auxiliary head, then the network's own: the losses are added up, and the second counts.
TEST_P(SoftmaxKernel, HeadsAddUp) {
  in_all_orders([&] {
    const Case c{9, 6, 7, 8};
    Bench bench;
    const std::vector<SampleSpec> samples = formula_samples("labels", c.samples, c.classes, true);
    Values expected(static_cast<std::size_t>(c.samples), 0.0);
    float* losses = nullptr;
    for (const float weight : {0.25F, 1.0F}) {
      Tensor logits = formula_tensor(losses == nullptr ? "early" : "last", Tensor(c.samples, c.classes), 4);
      for (double& value : logits.values) value = std::round(value * 8) / 8;
      Buffers b = make(bench, c, logits, samples);
      b.loss.weight = weight;
      b.loss.adds = losses != nullptr;
      if (losses == nullptr) {
        losses = b.loss.loss;
        b.loss.counters = nullptr;
      }
      b.loss.loss = losses;
      expect_success(softmax_cross_entropy(b.loss, bench.stream()));
      EXPECT_EQ(bench.get(b.loss.arrivals, 1)[0], 0U);
      const Loss loss{.label_smoothing = 0.1F, .weight = weight};
      const Values own = reference::loss_forward(loss, logits, samples);
      const Tensor gradient = reference::loss_backward(loss, logits, samples, 0.25 * 16);
      Values dlogits(static_cast<std::size_t>(c.samples * c.stored), 0.0);
      for (Index i = 0; i < c.valid; ++i) {
        expected[static_cast<std::size_t>(i)] += own[static_cast<std::size_t>(i)];
        for (Index k = 0; k < c.classes; ++k) dlogits[static_cast<std::size_t>(i * c.stored + k)] = gradient.at(i, k);
      }
      expect_close(bench.elements(b.loss.dlogits, c.samples * c.stored, storage()), dlogits, epsilon() + 0x1p-22,
                   "dlogits");
      double sum = 1.5;
      for (const double of_sample : expected) sum += of_sample;
      const Counters counters = bench.get(b.counters, 1)[0];
      EXPECT_EQ(counters.samples, weight == 1 ? 100 + c.valid : 100);
      EXPECT_NEAR(counters.sums[Counter::loss], weight == 1 ? sum : 1.5, 1e-6 * sum);
    }
    expect_close(bench.floats(losses, c.samples), expected, 0x1p-21, "loss");
  });
}

TEST_P(SoftmaxKernel, AnInfiniteOrUndefinedLogitIsNotedAndScoresNothing) {
  in_all_orders([&] {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      Bench bench;
      Tensor logits = formula_tensor("logits", Tensor(4, 10));
      logits.at(2, 7) = bad;
      const Buffers b = make(bench, {4, 4, 10, 16}, logits, std::vector<SampleSpec>(4));
      expect_success(softmax_cross_entropy(b.loss, bench.stream()));
      const Values loss = bench.floats(b.loss.loss, 4);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isfinite(loss[i]), i != 2);
      EXPECT_EQ(bench.get(b.worst, 1)[0], 0);
      EXPECT_EQ(bench.get(b.loss.hits, 4)[2] & 1, 0) << "a broken class ranks before the label";
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
