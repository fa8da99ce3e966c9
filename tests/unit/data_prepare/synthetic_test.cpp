// SPDX-License-Identifier: Apache-2.0
// Generated classes: the same everywhere, and out of a linear model's reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.hpp"
#include "data/dataset.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {

struct Samples {
  Index features = 0;
  std::vector<float> pixels;  ///< n x features, zero mean, unit deviation over the set
  std::vector<std::int32_t> labels;
  Index count() const { return static_cast<Index>(labels.size()); }
};

Samples generate(const SyntheticSpec& spec) {
  Samples set{spec.height * spec.width * spec.channels, {}, {}};
  std::vector<std::uint8_t> image(static_cast<std::size_t>(set.features));
  for (Index i = 0; i < spec.samples; ++i) {
    set.labels.push_back(synthetic_sample(spec, i, image.data()));
    for (const std::uint8_t value : image) set.pixels.push_back((static_cast<float>(value) - 128) / 40);
  }
  return set;
}

/// Softmax regression by stochastic gradient descent; the best held-out accuracy seen at any epoch. The first `train`
/// samples are trained on, the rest are held out.
class LinearModel {
 public:
  LinearModel(const Samples& set, Index train)
      : set_(set), train_(train), w_(static_cast<std::size_t>(10 * (set.features + 1))) {}

  double best_held_out(int epochs, float rate) {
    double best = 0;
    std::vector<Index> order(static_cast<std::size_t>(train_));
    std::iota(order.begin(), order.end(), Index{0});
    Random random(3, Stream::shuffle);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (std::size_t i = order.size() - 1; i > 0; --i) {
        std::swap(order[i], order[static_cast<std::size_t>(random.below(static_cast<Index>(i) + 1))]);
      }
      for (const Index sample : order) step(sample, rate);
      best = std::max(best, accuracy(train_, set_.count()));
    }
    return best;
  }

  double accuracy(Index begin, Index end) const {
    Index hits = 0;
    for (Index i = begin; i < end; ++i) {
      const auto p = logits(i);
      hits += std::max_element(p.begin(), p.end()) - p.begin() == set_.labels[static_cast<std::size_t>(i)] ? 1 : 0;
    }
    return static_cast<double>(hits) / static_cast<double>(end - begin);
  }

 private:
  const float* row(Index sample) const { return set_.pixels.data() + sample * set_.features; }

  std::vector<float> logits(Index sample) const {
    std::vector<float> values(10);
    for (std::size_t k = 0; k < 10; ++k) {
      const float* w = w_.data() + static_cast<Index>(k) * (set_.features + 1);
      const float* x = row(sample);
      float sum[8] = {w[set_.features]};
      for (Index i = 0; i < set_.features; i += 8) {
        for (int j = 0; j < 8; ++j) sum[j] += w[i + j] * x[i + j];
      }
      values[k] = std::accumulate(sum, sum + 8, 0.0F);
    }
    return values;
  }

  void step(Index sample, float rate) {
    auto p = logits(sample);
    const float top = *std::max_element(p.begin(), p.end());
    float total = 0;
    for (float& value : p) total += value = std::exp(value - top);
    for (std::size_t k = 0; k < 10; ++k) {
      const float target = static_cast<std::int32_t>(k) == set_.labels[static_cast<std::size_t>(sample)] ? 1.0F : 0.0F;
      const float slope = rate * (p[k] / total - target);
      float* w = w_.data() + static_cast<Index>(k) * (set_.features + 1);
      const float* x = row(sample);
      for (Index i = 0; i < set_.features; ++i) w[i] -= slope * x[i];
      w[set_.features] -= slope;
    }
  }

  const Samples& set_;
  Index train_;
  std::vector<float> w_;
};

TEST(Synthetic, IsAFunctionOfSeedAndNumber) {
  SyntheticSpec spec;
  std::vector<std::uint8_t> a(3072), b(3072);
  EXPECT_EQ(synthetic_sample(spec, 41, a.data()), synthetic_sample(spec, 41, b.data()));
  EXPECT_EQ(a, b);
  synthetic_sample(spec, 42, b.data());
  EXPECT_NE(a, b);
  spec.seed = 2;
  synthetic_sample(spec, 41, b.data());
  EXPECT_NE(a, b);
}

TEST(Synthetic, AnySizeAndNumberOfClasses) {
  for (const auto& [height, width, channels] :
       {std::array<Index, 3>{4, 4, 1}, {7, 33, 3}, {224, 224, 3}, {16, 16, 4}}) {
    const SyntheticSpec spec{10, height, width, channels, 1000, 1};
    const auto bytes = static_cast<std::size_t>(height * width * channels);
    std::vector<std::uint8_t> image(bytes + 8, 0xAA);
    for (Index i = 0; i < 20; ++i) {
      const std::int32_t label = synthetic_sample(spec, i, image.data());
      EXPECT_GE(label, 0);
      EXPECT_LT(label, 1000);
      EXPECT_EQ(std::vector<std::uint8_t>(image.begin() + static_cast<Index>(bytes), image.end()),
                std::vector<std::uint8_t>(8, 0xAA));
      // Neither flat nor saturated.
      const auto [low, high] = std::minmax_element(image.begin(), image.begin() + static_cast<Index>(bytes));
      EXPECT_GT(*high - *low, 30);
    }
  }
  std::uint8_t pixel[48];
  expect_error(Exit::usage, {"1 to 3360 classes"}, [&] { synthetic_sample({10, 4, 4, 3, 3361, 1}, 0, pixel); });
}

TEST(Synthetic, ClassesAreEquallyLikelyAndEquallyBright) {
  const Samples set = generate({4000, 16, 16, 3, 10, 1});
  std::vector<double> count(10), sum(10);
  for (Index i = 0; i < set.count(); ++i) {
    const auto k = static_cast<std::size_t>(set.labels[static_cast<std::size_t>(i)]);
    count[k] += 1;
    for (Index j = 0; j < set.features; ++j) sum[k] += set.pixels[static_cast<std::size_t>(i * set.features + j)];
  }
  for (std::size_t k = 0; k < 10; ++k) {
    EXPECT_NEAR(count[k], 400, 80) << k;  // four standard deviations
    EXPECT_NEAR(sum[k] / (count[k] * static_cast<double>(set.features)), 0, 0.1) << k;
  }
}

TEST(Synthetic, ALinearModelStaysBelow60Percent) {
  const Samples set = generate({2500, 16, 16, 3, 10, 1});
  LinearModel model(set, 2000);
  const double held_out = model.best_held_out(40, 0.003F);
  EXPECT_LT(held_out, 0.6);
  RecordProperty("held_out_percent", static_cast<int>(100 * held_out));
  // It did learn: what it was trained on it knows far better than chance.
  EXPECT_GT(model.accuracy(0, 2000), 0.5);
}

TEST(Synthetic, TheSameLinearModelLearnsALinearTask) {
  // Control: a faint class-dependent light on a tenth of the pixels is all it takes.
  Samples set = generate({2500, 16, 16, 3, 10, 1});
  for (Index i = 0; i < set.count(); ++i) {
    for (Index j = set.labels[static_cast<std::size_t>(i)]; j < set.features; j += 10) {
      set.pixels[static_cast<std::size_t>(i * set.features + j)] += 0.5F;
    }
  }
  EXPECT_GT(LinearModel(set, 2000).best_held_out(8, 0.003F), 0.9);
}

}  // namespace
}  // namespace convoy
