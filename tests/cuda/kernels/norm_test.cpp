// SPDX-License-Identifier: Apache-2.0
// Batch norm, activation and joins as kernels, against sums and formulas in double.
#include "backend/cuda/operations/batch_norm.hpp"

#include <cmath>
#include <utility>

#include "backend/rules/exchanged_sum.hpp"
#include "cuda/kernels/norm_case.hpp"
#include "support/hard_channels.hpp"

namespace convoy::cuda {
namespace {

class Norm : public EveryStorage {
 protected:
  static Values values(const std::string& name, Index count, double scale = 1, double offset = 0) {
    return formula_values(name, count, scale, offset);
  }
  /// Sums by reduce kernels: rounding of each product, and of sums in float.
  static double sum_tolerance(Size size) { return 0x1p-24 * (4 + std::sqrt(static_cast<double>(size.rows))); }
  /// Room for what the statistics of a norm become.
  static void give_vectors(NormFinish& finish, Bench& bench, Index channels) {
    NormVectors& to = finish.vectors;
    for (float** vector : {&finish.tail_mean, &finish.tail_variance, &to.mean, &to.rstd, &to.scale, &to.shift})
      *vector = bench.empty<float>(channels);
    to.low_scale = bench.empty_elements(channels, storage());
    to.low_shift = bench.empty_elements(channels, storage());
  }
};
CONVOY_EVERY_STORAGE(Norm);

/// In one launch, or with the sums on their way through memory.
TEST_P(Norm, StatisticsBecomeScaleAndShift) {
  in_all_orders([&] {
    for (const auto& shape : {std::pair(sizes[0], true),
                              {sizes[1], true},
                              {sizes[2], true},
                              {sizes[3], false},
                              {sizes[4], true},
                              {sizes[5], false},
                              {many_blocks, true}}) {
      const Size size = shape.first;
      const bool in_one = shape.second;
      SCOPED_TRACE(size.channels);
      Bench bench;
      const Index count = size.rows * size.channels;
      Values x = values("x", count, 1, 0.5);
      const Values gamma = values("gamma", size.channels, 0.25, 1), beta = values("beta", size.channels);
      StatisticsReduce reduce{storage(), size.rows, size.channels, bench.elements(x, storage())};
      const Reduction reduction(bench, size, 2);
      reduce.place = reduction.place;

      FeedNumbers feed;
      feed.shared = static_cast<double>(size.rows);
      feed.weight = 0.75F;
      NormFinish finish;
      finish.channels = size.channels;
      finish.pixels = 1;
      finish.epsilon = 1e-3F;
      finish.gamma = bench.floats(gamma);
      finish.beta = bench.floats(beta);
      finish.feed = bench.put(std::vector<FeedNumbers>{feed});
      finish.low = storage();
      give_vectors(finish, bench, size.channels);
      if (in_one) {
        reduce.finish = finish;
        expect_success(reduce_statistics(reduce, bench.stream()));
      } else {
        reduce.totals = bench.empty<float>(4 * size.channels);
        expect_success(reduce_statistics(reduce, bench.stream()));
        finish.sums = {{reduce.totals, reduce.totals + size.channels}, 2, 2 * size.channels};
        expect_success(finish_statistics(&finish, 1, bench.stream()));
      }
      reduction.expect_ready(bench);

      Values mean = by_channel(size, [&](std::size_t i) { return x[i] / static_cast<double>(size.rows); });
      const auto channels = static_cast<std::size_t>(size.channels);
      const Values variance = by_channel(size, [&](std::size_t i) {
        const double from_mean = x[i] - mean[i % channels];
        return from_mean * from_mean / static_cast<double>(size.rows);
      });
      Values rstd, scale, shift, tail_mean, tail_variance;
      const double rows = static_cast<double>(size.rows), unbiased = rows > 1 ? rows / (rows - 1) : 1;
      for (std::size_t c = 0; c < channels; ++c) {
        rstd.push_back(1 / std::sqrt(variance[c] + static_cast<double>(finish.epsilon)));
        scale.push_back(gamma[c] * rstd[c]);
        shift.push_back(beta[c] - mean[c] * scale[c]);
        tail_mean.push_back(0.75 * mean[c]);
        tail_variance.push_back(0.75 * unbiased * variance[c]);
      }
      // The variance is E[x^2] - mean^2, so what rounding does to the sums counts in units of E[x^2].
      const double tolerance = sum_tolerance(size);
      double of_rstd = 0;
      for (std::size_t c = 0; c < channels; ++c) {
        const double square = variance[c] + mean[c] * mean[c];
        of_rstd = std::max(of_rstd, tolerance * (1 + square * rstd[c] * rstd[c]));
      }
      const auto read = [&](const float* from) { return bench.floats(from, size.channels); };
      expect_close(read(finish.vectors.mean), mean, tolerance, "mean");
      expect_close(read(finish.vectors.rstd), rstd, of_rstd, "rstd");
      expect_close(read(finish.vectors.scale), scale, of_rstd, "scale");
      expect_close(read(finish.vectors.shift), shift, of_rstd, "shift");
      expect_close(read(finish.tail_mean), tail_mean, tolerance, "mean in the tail");
      if (size.rows > 1)
        expect_close(read(finish.tail_variance), tail_variance, 20 * tolerance, "variance in the tail");
      expect_close(bench.elements(finish.vectors.low_scale, size.channels, storage()), scale, epsilon() + of_rstd,
                   "scale in storage");
      expect_close(bench.elements(finish.vectors.low_shift, size.channels, storage()), shift, epsilon() + of_rstd,
                   "shift in storage");
    }
  });
}

/// Own sums; those of a convolution, which are recounted where they drown; and both through the exchange of ranks.
TEST_P(Norm, VariancesHoldWhereTheMeanIsLarge) {
  constexpr auto kinds = static_cast<Index>(hard_channels.size());
  for (const Size size : {Size{20000, 8}, Size{20000, kinds}, Size{3, kinds}}) {
    Bench bench;
    Values x(static_cast<std::size_t>(size.rows * size.channels));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto channels = static_cast<std::size_t>(size.channels);
      x[i] = static_cast<double>(
          hard_pixel(hard_channels[i % channels % hard_channels.size()], static_cast<Index>(i / channels), size.rows));
    }
    const void* const device = bench.elements(x, storage());
    const auto over_rows = [&](const auto& at) { return by_channel(size, at); };
    const Values sum = over_rows([&](std::size_t i) { return x[i]; });
    const Values squares = over_rows([&](std::size_t i) { return x[i] * x[i]; });
    const auto rows = static_cast<double>(size.rows);
    const Values variance = over_rows([&](std::size_t i) {
      return std::pow(x[i] - sum[i % static_cast<std::size_t>(size.channels)] / rows, 2) / (rows - 1);
    });
    StatisticsReduce reduce{storage(), size.rows, size.channels, device};
    reduce.place = Reduction(bench, size, 2).place;
    reduce.totals = bench.empty<float>(4 * size.channels);
    expect_success(reduce_statistics(reduce, bench.stream()));
    FeedNumbers feed;
    feed.shared = rows;
    feed.weight = 1;
    NormFinish finish;
    finish.channels = size.channels;
    finish.pixels = 1;
    finish.epsilon = 1e-3F;
    finish.gamma = bench.floats(values("gamma", size.channels));
    finish.beta = finish.gamma;
    finish.feed = bench.put(std::vector<FeedNumbers>{feed});
    finish.tail_mean = bench.empty<float>(size.channels);
    finish.tail_variance = bench.empty<float>(size.channels);
    finish.low = storage();
    // What is not recounted is off by the rounding of the convolution's sums: of the mean, 2 u mean^2, and of the
    // squares, u (mean^2 + variance).
    const double around_zero = storage() == Storage::f32 ? (1 + 3 * 16) * 0x1p-24 : (1 + 3 * 1024) * 0x1p-24;
    const auto expect_variances = [&](const PartialSums& sums, double bound) {
      finish.sums = sums;
      expect_success(finish_statistics(&finish, 1, bench.stream()));
      const Values got = bench.floats(finish.tail_variance, size.channels);
      for (std::size_t c = 0; c < got.size(); ++c)
        EXPECT_NEAR(got[c], variance[c], bound * variance[c] + 0x1p-42 * sum[c] * sum[c] / (rows * rows))
            << "kind " << c % hard_channels.size() << ", " << size.rows << " rows";
    };
    const auto expect_exchanged = [&](const PartialSums& sums, double bound) {
      SumsFold fold;
      fold.sums = sums;
      fold.channels = size.channels;
      fold.stride = 16;
      fold.recount = std::exchange(finish.recount, {});
      for (int t = 0; t < 2; ++t) fold.out[t] = bench.empty<float>(exchanged_parts * fold.stride);
      expect_success(fold_sums(fold, bench.stream()));
      expect_variances({{fold.out[0], fold.out[1]}, exchanged_parts, fold.stride}, bound);
    };
    const PartialSums own{{reduce.totals, reduce.totals + size.channels}, 2, 2 * size.channels};
    expect_variances(own, variance_bound);
    expect_exchanged(own, variance_bound);
    const PartialSums convolution{{bench.floats(sum), bench.floats(squares)}, 1, 0};
    finish.recount = {storage(), device, size.rows};
    expect_variances(convolution, around_zero);
    expect_exchanged(convolution, around_zero);
  }
}

TEST_P(Norm, ManyPartsAreAddedInDouble) {
  in_all_orders([&] {
    Bench bench;
    constexpr Index parts = 37, channels = 40;
    const Values a = values("a", parts * channels), b = values("b", parts * channels),
                 c = values("c", parts * channels);
    SumsFold fold;
    fold.sums.at[0] = bench.floats(a);
    fold.sums.at[1] = bench.floats(b);
    fold.sums.at[2] = bench.floats(c);
    fold.sums.parts = parts;
    fold.sums.stride = channels;
    fold.terms = 3;
    fold.channels = channels;
    for (float*& out : fold.out) out = bench.empty<float>(channels);
    expect_success(fold_sums(fold, bench.stream()));
    const Values* const terms[] = {&a, &b, &c};
    for (int t = 0; t < 3; ++t) {
      const Values want = by_channel({parts, channels}, [&](std::size_t i) { return (*terms[t])[i]; });
      expect_close(bench.floats(fold.out[t], channels), want, 0x1p-24, "folded sum");
    }
  });
}

/// The two branches of a join, of different sums and as many channels.
TEST_P(Norm, TwoNormsShareALaunch) {
  in_all_orders([&] {
    Bench bench;
    constexpr Index channels = 40, rows = 10;
    FeedNumbers feed;
    feed.shared = rows;
    NormFinish finishes[2];
    Values want[2];
    for (int n = 0; n < 2; ++n) {
      const Values mean = values("mean" + std::to_string(n), channels),
                   gamma = values("gamma" + std::to_string(n), channels);
      Values sum, squares;
      for (std::size_t c = 0; c < mean.size(); ++c) {
        sum.push_back(rows * mean[c]);
        squares.push_back(rows * (mean[c] * mean[c] + 1 + n));
        want[n].push_back(gamma[c] / std::sqrt(1.0 + n));
      }
      finishes[n].sums = {{bench.floats(sum), bench.floats(squares)}, 1, 0};
      finishes[n].channels = channels;
      finishes[n].pixels = 1;
      finishes[n].gamma = finishes[n].beta = bench.floats(gamma);
      finishes[n].feed = bench.put(std::vector<FeedNumbers>{feed});
      finishes[n].low = storage();
      finishes[n].vectors.scale = bench.empty<float>(channels);
    }
    expect_success(finish_statistics(finishes, 2, bench.stream()));
    // Sums are rounded to floats, and the variance is a difference of numbers up to 3 times as large.
    for (int n = 0; n < 2; ++n)
      expect_close(bench.floats(finishes[n].vectors.scale, channels), want[n], 4 * 0x1p-24, "scale");
  });
}

TEST_P(Norm, EvaluationTakesRunningStatistics) {
  in_all_orders([&] {
    Bench bench;
    const Values gamma = values("gamma", 300, 0.25, 1), beta = values("beta", 300), mean = values("mean", 300),
                 variance = values("variance", 300, 0.5, 1);
    Values block;
    for (const Values* part : {&gamma, &beta, &mean, &variance}) block.insert(block.end(), part->begin(), part->end());
    std::vector<EvaluationNorm> norms(2);
    for (std::size_t i = 0; i < 2; ++i) {
      const Index from = i == 0 ? 0 : 17;
      norms[i] = {from, 300 + from, 600 + from, 900 + from, i == 0 ? 17 : 283, 1e-5F, {}};
      norms[i].vectors.scale = bench.empty<float>(300);
      norms[i].vectors.shift = bench.empty<float>(300);
      norms[i].vectors.low_scale = bench.empty_elements(300, storage());
    }
    expect_success(finish_evaluation(bench.put(norms), 2, bench.floats(block), storage(), bench.stream()));
    for (const EvaluationNorm& norm : norms) {
      Values scale, shift;
      for (Index c = 0; c < norm.channels; ++c) {
        const auto at = static_cast<std::size_t>(norm.gamma + c);
        scale.push_back(gamma[at] / std::sqrt(variance[at] + static_cast<double>(norm.epsilon)));
        shift.push_back(beta[at] - mean[at] * scale.back());
      }
      expect_close(bench.floats(norm.vectors.scale, norm.channels), scale, 0x1p-23, "scale");
      expect_close(bench.floats(norm.vectors.shift, norm.channels), shift, 0x1p-23, "shift");
      expect_close(bench.elements(norm.vectors.low_scale, norm.channels, storage()), scale, epsilon() + 0x1p-23,
                   "scale in storage");
    }
  });
}

enum class Join { none, tensor, norm };

TEST_P(Norm, AppliesNormJoinAndActivation) {
  in_all_orders([&] {
    for (const Size size : sizes) {
      for (const ActivationRule& rule : activations) {
        for (const Join join : {Join::none, Join::tensor, Join::norm}) {
          SCOPED_TRACE(testing::Message() << size.channels << " channels, activation " << static_cast<int>(rule.kind)
                                          << ", join " << static_cast<int>(join));
          Bench bench;
          const Index count = size.rows * size.channels;
          const auto channels = static_cast<std::size_t>(size.channels);
          Values x = values("x", count), other = values("other", count);
          const Values scale = values("scale", size.channels), shift = values("shift", size.channels),
                       scale2 = values("scale2", size.channels), shift2 = values("shift2", size.channels);
          Apply args{storage(), size.rows, size.channels, rule};
          args.x = bench.elements(x, storage());
          args.scale = bench.floats(scale);
          args.shift = bench.floats(shift);
          if (join != Join::none) args.other = bench.elements(other, storage());
          if (join == Join::norm) args.scale2 = bench.floats(scale2), args.shift2 = bench.floats(shift2);
          args.z = bench.empty_elements(count, storage());
          const bool masks = rule.kind == ActivationKind::relu && size.channels % 8 == 0;
          if (masks) args.mask = bench.empty<std::uint8_t>(count / 8);
          expect_success(apply(args, bench.stream()));
          Values want(static_cast<std::size_t>(count));
          for (std::size_t i = 0; i < want.size(); ++i) {
            const std::size_t c = i % channels;
            double y = scale[c] * x[i] + shift[c];
            if (join == Join::tensor) y += other[i];
            if (join == Join::norm) y += scale2[c] * other[i] + shift2[c];
            want[i] = activate(rule, y);
          }
          const Values got = bench.elements(args.z, count, storage());
          expect_close(got, want, epsilon() + 0x1p-22, "z");
          if (!masks) continue;
          const auto bits = bench.get(args.mask, count / 8);
          for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(bits[i / 8] >> i % 8 & 1, got[i] > 0 ? 1 : 0) << i;
        }
      }
    }
  });
}

/// A block that finishes the norm of its channels gives what a launch of its own and one for the pass give, to a
/// rounding, and leaves the same vectors: also where channels drown in the rounding of a convolution's sums.
TEST_P(Norm, AppliesANormThatItFinishes) {
  constexpr auto kinds = static_cast<Index>(hard_channels.size());
  in_all_orders([&] {
    for (const Size size : {Size{131, 5}, Size{700, 24}, Size{33, 136}, Size{300, kinds}}) {
      for (const Join join : {Join::none, Join::tensor, Join::norm}) {
        SCOPED_TRACE(testing::Message() << size.channels << " channels, join " << static_cast<int>(join));
        Bench bench;
        const Index count = size.rows * size.channels;
        const auto channels = static_cast<std::size_t>(size.channels);
        Values tensors[2] = {values("x", count), values("other", count)};
        if (size.channels == kinds)
          for (std::size_t i = 0; i < tensors[0].size(); ++i)
            tensors[0][i] = static_cast<double>(
                hard_pixel(hard_channels[i % channels], static_cast<Index>(i / channels), size.rows));
        FeedNumbers feed;
        feed.shared = static_cast<double>(size.rows);
        feed.weight = 0.5F;
        const FeedNumbers* const device_feed = bench.put(std::vector<FeedNumbers>{feed});
        const void* device[2];
        NormFinish finishes[2];
        for (int n = 0; n < 2; ++n) {
          device[n] = bench.elements(tensors[n], storage());
          const Values& x = tensors[n];
          finishes[n].sums = {{bench.floats(by_channel(size, [&](std::size_t i) { return x[i]; })),
                               bench.floats(by_channel(size, [&](std::size_t i) { return x[i] * x[i]; }))},
                              1,
                              0};
          finishes[n].recount = {storage(), device[n], size.rows};
          finishes[n].channels = size.channels;
          finishes[n].pixels = 1;
          finishes[n].epsilon = 1e-3F;
          finishes[n].gamma = bench.floats(values("gamma", size.channels));
          finishes[n].beta = bench.floats(values("beta", size.channels));
          finishes[n].feed = device_feed;
          finishes[n].low = storage();
          give_vectors(finishes[n], bench, size.channels);
        }
        Apply args{storage(), size.rows, size.channels, {ActivationKind::relu}};
        args.x = device[0];
        if (join != Join::none) args.other = device[1];
        Apply in_one = args;
        args.z = bench.empty_elements(count, storage());
        in_one.z = bench.empty_elements(count, storage());
        expect_success(finish_statistics(finishes, join == Join::norm ? 2 : 1, bench.stream()));
        args.scale = finishes[0].vectors.scale;
        args.shift = finishes[0].vectors.shift;
        if (join == Join::norm) args.scale2 = finishes[1].vectors.scale, args.shift2 = finishes[1].vectors.shift;
        expect_success(apply(args, bench.stream()));
        in_one.finish = finishes[0];
        give_vectors(in_one.finish, bench, size.channels);
        if (join == Join::norm) {
          in_one.finish2 = finishes[1];
          give_vectors(in_one.finish2, bench, size.channels);
        }
        expect_success(apply(in_one, bench.stream()));
        // Channels that drown are added up in another order.
        const double same = size.channels == kinds ? 0x1p-20 : 0x1p-23;
        const auto expect_same = [&](const NormFinish& got, const NormFinish& want) {
          for (const auto part : {&NormVectors::mean, &NormVectors::rstd, &NormVectors::scale, &NormVectors::shift})
            expect_close(bench.floats(got.vectors.*part, size.channels),
                         bench.floats(want.vectors.*part, size.channels), same, "a vector");
          expect_close(bench.floats(got.tail_variance, size.channels), bench.floats(want.tail_variance, size.channels),
                       same, "variance in the tail");
          expect_close(bench.elements(got.vectors.low_shift, size.channels, storage()),
                       bench.elements(want.vectors.low_shift, size.channels, storage()), epsilon(), "shift in storage");
        };
        expect_same(in_one.finish, finishes[0]);
        if (join == Join::norm) expect_same(in_one.finish2, finishes[1]);
        expect_close(bench.elements(in_one.z, count, storage()), bench.elements(args.z, count, storage()),
                     epsilon() + same, "z");
      }
    }
  });
}

TEST_P(Norm, AppliesInPlaceWithoutNorm) {
  in_all_orders([&] {
    Bench bench;
    Values x = values("x", 37 * 24), other = values("other", 37 * 24);
    Apply args{storage(), 37, 24, {}};
    args.x = bench.elements(x, storage());
    args.other = bench.elements(other, storage());
    args.z = const_cast<void*>(args.other);
    expect_success(apply(args, bench.stream()));
    Values want;
    for (std::size_t i = 0; i < x.size(); ++i) want.push_back(x[i] + other[i]);
    expect_close(bench.elements(args.z, 37 * 24, storage()), want, epsilon(), "sum in place");
  });
}

}  // namespace
}  // namespace convoy::cuda
