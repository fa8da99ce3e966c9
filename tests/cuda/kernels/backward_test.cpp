// SPDX-License-Identifier: Apache-2.0
// The backward pass of norms, joins and activations as kernels, against sums and formulas in double.
#include <algorithm>

#include "backend/rules/activation.hpp"
#include "cuda/kernels/norm_case.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

/// Where the activation's derivative comes from.
enum class From { stored, mask, again };

struct Case {
  Size size;
  ActivationRule rule;
  From from = From::stored;
  bool dual = false, more = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Size size : sizes) {
    for (const ActivationRule& rule : activations) {
      for (const bool dual : {false, true}) {
        const bool needs_input = derivative_needs(rule.kind).input;
        if (!needs_input) all.push_back({size, rule, From::stored, dual, dual});
        if (rule.kind != ActivationKind::identity) all.push_back({size, rule, From::again, dual, !dual});
        if (rule.kind == ActivationKind::relu && size.channels % 8 == 0)
          all.push_back({size, rule, From::mask, dual, true});
      }
    }
  }
  return all;
}

/// A case on the device and in double.
struct Data {
  Data(Bench& bench, const Case& c, Storage storage)
      : count(c.size.rows * c.size.channels), channels(static_cast<std::size_t>(c.size.channels)) {
    const auto vector = [&](const char* name, double offset = 0) {
      return formula_values(name, c.size.channels, 0.5, offset);
    };
    x = formula_values("x", count);
    other = formula_values("other", count);
    dz = formula_values("dz", count);
    more = formula_values("dz_more", count);
    mean = vector("mean");
    mean2 = vector("mean2");
    device_x = bench.elements(x, storage);
    device_other = bench.elements(other, storage);
    source.activation = c.rule;
    source.dz = bench.elements(dz, storage);
    if (c.more) source.dz_more = bench.elements(more, storage);
    if (!c.more) std::fill(more.begin(), more.end(), 0.0);

    const Values scale = vector("scale", 1), shift = vector("shift"), scale2 = vector("scale2", 1),
                 shift2 = vector("shift2");
    Values input(static_cast<std::size_t>(count)), z = input;
    for (std::size_t i = 0; i < z.size(); ++i) {
      double& y = input[i];
      y = scale[i % channels] * x[i] + shift[i % channels];
      if (c.dual) y += scale2[i % channels] * other[i] + shift2[i % channels];
      z[i] = activate(c.rule, y);
    }
    if (c.from == From::again) {
      source.scale = bench.floats(scale);
      source.shift = bench.floats(shift);
      if (c.dual) {
        source.scale2 = bench.floats(scale2);
        source.shift2 = bench.floats(shift2);
      }
    } else {
      void* const stored = bench.elements(z, storage);  // the derivative is of what is stored
      if (c.from == From::stored) source.z = stored;
      if (c.from == From::mask) source.mask = masks(bench, z);
    }
    for (std::size_t i = 0; i < z.size(); ++i) g.push_back((dz[i] + more[i]) * derivative(c.rule, input[i], z[i]));
  }
  static std::uint8_t* masks(Bench& bench, const Values& z) {
    std::vector<std::uint8_t> bits(z.size() / 8, 0);
    for (std::size_t i = 0; i < z.size(); ++i)
      bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | (z[i] > 0 ? 1 : 0) << i % 8);
    return bench.put(bits);
  }

  Index count;
  std::size_t channels;
  Values x, other, dz, more, g, mean, mean2;
  const void *device_x, *device_other;
  MaskedGradient source;
};

class BackwardPass : public EveryStorage {
 protected:
  template <class Body>
  void for_every_case(const Body& body) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(testing::Message() << c.size.rows << 'x' << c.size.channels << ", activation "
                                      << static_cast<int>(c.rule.kind) << ", from " << static_cast<int>(c.from)
                                      << (c.dual ? ", two norms" : ""));
      Bench bench;
      Data data(bench, c, storage());
      body(bench, c, data);
      if (HasFatalFailure()) return;
    }
  }
};
CONVOY_EVERY_STORAGE(BackwardPass);

TEST_P(BackwardPass, ReducesMaskedGradients) {
  in_all_orders([&] {
    for_every_case([&](Bench& bench, const Case& c, const Data& data) {
      const int terms = c.dual ? 3 : 2;
      BackwardReduce reduce{storage(), c.size.rows, c.size.channels, data.source};
      reduce.x = data.device_x;
      reduce.mean = bench.floats(data.mean);
      if (c.dual) {
        reduce.other = data.device_other;
        reduce.mean2 = bench.floats(data.mean2);
      }
      reduce.g = bench.empty_elements(data.count, storage());
      const Reduction reduction(bench, c.size, terms);
      reduce.place = reduction.place;
      reduce.end.totals = bench.empty<float>(terms * c.size.channels);
      expect_success(reduce_backward(reduce, bench.stream()));
      reduction.expect_ready(bench);

      const double tolerance = 0x1p-24 * (8 + 2 * std::sqrt(static_cast<double>(c.size.rows)));
      const auto expect_sum = [&](int term, const std::function<double(std::size_t)>& value) {
        expect_close(bench.floats(reduce.end.totals + term * c.size.channels, c.size.channels),
                     by_channel(c.size, value), 4 * tolerance, "sum");
      };
      expect_close(bench.elements(reduce.g, data.count, storage()), data.g, epsilon() + 0x1p-22, "g");
      expect_sum(0, [&](std::size_t i) { return data.g[i]; });
      expect_sum(1, [&](std::size_t i) { return data.g[i] * (data.x[i] - data.mean[i % data.channels]); });
      if (c.dual)
        expect_sum(2, [&](std::size_t i) { return data.g[i] * (data.other[i] - data.mean2[i % data.channels]); });
    });
  });
}

TEST_P(BackwardPass, AppliesFactorsToMaskedGradients) {
  in_all_orders([&] {
    for_every_case([&](Bench& bench, const Case& c, const Data& data) {
      const auto vector = [&](const char* name) { return formula_values(name, c.size.channels); };
      const Values a = vector("a"), b = vector("b"), d = vector("d"), a2 = vector("a2"), b2 = vector("b2"),
                   d2 = vector("d2");
      BackwardApply apply{storage(), c.size.rows, c.size.channels, data.source};
      apply.x = data.device_x;
      apply.a = bench.floats(a);
      apply.b = bench.floats(b);
      apply.d = bench.floats(d);
      apply.dx = const_cast<void*>(data.source.dz);  // in place
      if (c.dual) {
        apply.other = data.device_other;
        apply.a2 = bench.floats(a2);
        apply.b2 = bench.floats(b2);
        apply.d2 = bench.floats(d2);
        apply.dx2 = bench.empty_elements(data.count, storage());
      }
      expect_success(apply_backward(apply, bench.stream()));
      Values dx, dx2;
      for (std::size_t i = 0; i < data.g.size(); ++i) {
        const std::size_t k = i % data.channels;
        dx.push_back(a[k] * data.g[i] + b[k] * data.x[i] + d[k]);
        dx2.push_back(a2[k] * data.g[i] + b2[k] * data.other[i] + d2[k]);
      }
      expect_close(bench.elements(apply.dx, data.count, storage()), dx, epsilon() + 0x1p-22, "dx");
      if (c.dual) expect_close(bench.elements(apply.dx2, data.count, storage()), dx2, epsilon() + 0x1p-22, "dx2");
    });
  });
}

TEST_P(BackwardPass, PassesGradientsOnWithoutNorm) {
  in_all_orders([&] {
    for_every_case([&](Bench& bench, const Case& c, const Data& data) {
      if (c.dual || c.from == From::again) return;
      BackwardApply apply{storage(), c.size.rows, c.size.channels, data.source};
      apply.dx = bench.empty_elements(data.count, storage());
      expect_success(apply_backward(apply, bench.stream()));
      expect_close(bench.elements(apply.dx, data.count, storage()), data.g, epsilon() + 0x1p-23, "dx");
    });
  });
}

/// Sums that are complete become factors in front of the pass, and gradients by its first blocks: of one norm, or of
/// the second of two, whose first has its factors in memory.
TEST_P(BackwardPass, MakesFactorsOfSumsOnTheFly) {
  in_all_orders([&] {
    for (const Size size : sizes) {
      for (const bool second : {false, true}) {
        SCOPED_TRACE(testing::Message() << size.rows << 'x' << size.channels << (second ? ", second" : ""));
        Bench bench;
        const Data data(bench, {size, {}, From::stored, second}, storage());
        constexpr Index pixels = 6;
        const auto vector = [&](const char* name, double offset = 0) {
          return formula_values(name, size.channels, 0.5, offset);
        };
        const Values dbeta = vector("dbeta"), dgamma = vector("dgamma"), gamma = vector("gamma", 1),
                     rstd = vector("rstd", 1);
        FeedNumbers feed;
        feed.shared = 5;
        FactorSums sums;
        sums.dbeta = bench.floats(dbeta);
        sums.dgamma = bench.floats(dgamma);
        sums.gamma = bench.floats(gamma);
        sums.rstd = bench.floats(rstd);
        sums.mean = bench.floats(second ? data.mean2 : data.mean);
        sums.feed = bench.put(std::vector<FeedNumbers>{feed});
        sums.pixels = pixels;
        sums.loss_scale = bench.put(std::vector<float>{8});
        sums.to_dgamma = bench.empty<float>(size.channels);
        sums.to_dbeta = bench.empty<float>(size.channels);
        BackwardApply apply{storage(), size.rows, size.channels, data.source};
        apply.x = data.device_x;
        apply.other = data.device_other;
        (second ? apply.sums2 : apply.sums) = sums;
        apply.dx = bench.empty_elements(data.count, storage());
        if (second) apply.dx2 = bench.empty_elements(data.count, storage());
        expect_success(apply_backward(apply, bench.stream()));
        Values dx, unscaled[2];
        for (std::size_t i = 0; i < data.g.size(); ++i) {
          const std::size_t k = i % data.channels;
          const double x = second ? data.other[i] - data.mean2[k] : data.x[i] - data.mean[k];
          const double a = gamma[k] * rstd[k];
          dx.push_back(a * (data.g[i] - (dbeta[k] + rstd[k] * dgamma[k] * x) / (5 * pixels)));
        }
        for (std::size_t k = 0; k < data.channels; ++k) {
          unscaled[0].push_back(dgamma[k] / 8);
          unscaled[1].push_back(dbeta[k] / 8);
        }
        // a, b and d are products of up to four floats each.
        expect_close(bench.elements(second ? apply.dx2 : apply.dx, data.count, storage()), dx, epsilon() + 8 * 0x1p-23,
                     "dx");
        if (second) expect_close(bench.elements(apply.dx, data.count, storage()), data.g, epsilon(), "dx of factors 1");
        expect_close(bench.floats(sums.to_dgamma, size.channels), unscaled[0], 0x1p-24, "dgamma");
        expect_close(bench.floats(sums.to_dbeta, size.channels), unscaled[1], 0x1p-24, "dbeta");
      }
    }
  });
}

/// The last block of a reduction finishes the norms: one of two is dropped, as where it is frozen.
TEST_P(BackwardPass, AReductionFinishesItsNorms) {
  in_all_orders([&] {
    for (const Size size : {sizes[1], sizes[3], many_blocks}) {
      for (const bool both : {false, true}) {
        SCOPED_TRACE(testing::Message() << size.rows << 'x' << size.channels << (both ? ", both" : ""));
        Bench bench;
        const Data data(bench, {size, {}, From::stored, true}, storage());
        const Values gamma = formula_values("gamma", size.channels, 0.5, 1),
                     rstd = formula_values("rstd", size.channels, 0.5, 1);
        FeedNumbers feed;
        feed.shared = static_cast<double>(size.rows);
        BackwardReduce reduce{storage(), size.rows, size.channels, data.source};
        reduce.x = data.device_x;
        reduce.other = data.device_other;
        reduce.mean = bench.floats(data.mean);
        reduce.mean2 = bench.floats(data.mean2);
        const Reduction reduction(bench, size, 3);
        reduce.place = reduction.place;
        const auto empty = [&] { return bench.empty<float>(size.channels); };
        for (int n = both ? 0 : 1; n < 2; ++n) {
          NormGradients& gradients = reduce.end.gradients[n];
          gradients.channels = size.channels;
          gradients.rstd = bench.floats(rstd);
          gradients.dgamma = empty();
          gradients.dbeta = empty();
          BackwardFinish& factors = reduce.end.factors[n];
          factors.channels = size.channels;
          factors.pixels = 1;
          factors.gamma = bench.floats(gamma);
          factors.feed = bench.put(std::vector<FeedNumbers>{feed});
          factors.vectors.mean = const_cast<float*>(n == 0 ? reduce.mean : reduce.mean2);
          factors.vectors.rstd = const_cast<float*>(gradients.rstd);
          factors.vectors.a = empty();
          factors.vectors.b = empty();
          factors.vectors.d = empty();
        }
        expect_success(reduce_backward(reduce, bench.stream()));
        reduction.expect_ready(bench);
        const Values dbeta = by_channel(size, [&](std::size_t i) { return data.g[i]; });
        const double tolerance = 4 * 0x1p-24 * (8 + 2 * std::sqrt(static_cast<double>(size.rows)));
        for (int n = both ? 0 : 1; n < 2; ++n) {
          const Values &x = n == 0 ? data.x : data.other, &mean = n == 0 ? data.mean : data.mean2;
          Values dgamma = by_channel(size, [&](std::size_t i) {
            return data.g[i] * (x[i] - mean[i % data.channels]) * rstd[i % data.channels];
          });
          Values b, d;
          for (std::size_t k = 0; k < data.channels; ++k) {
            const double a = gamma[k] * rstd[k], rows = static_cast<double>(size.rows);
            b.push_back(-a * rstd[k] * dgamma[k] / rows);
            d.push_back(-a * dbeta[k] / rows - b[k] * mean[k]);
          }
          const auto read = [&](const float* from) { return bench.floats(from, size.channels); };
          expect_close(read(reduce.end.gradients[n].dgamma), dgamma, tolerance, "dgamma");
          expect_close(read(reduce.end.gradients[n].dbeta), dbeta, tolerance, "dbeta");
          expect_close(read(reduce.end.factors[n].vectors.b), b, tolerance, "b");
          expect_close(read(reduce.end.factors[n].vectors.d), d, 2 * tolerance, "d");
        }
      }
    }
  });
}

/// Two parts with products about the mean or normalised; with a loss scale; what is null is not written.
TEST_P(BackwardPass, SumsBecomeGradientsAndFactors) {
  in_all_orders([&] {
    for (const Products products : {Products::centred, Products::normalised}) {
      Bench bench;
      constexpr Index channels = 45, parts = 3, pixels = 6;
      const Values sums = formula_values("sums", parts * channels), more = formula_values("products", parts * channels),
                   rstd = formula_values("rstd", channels, 0.5, 1), mean = formula_values("mean", channels),
                   gamma = formula_values("gamma", channels);
      FeedNumbers feed;
      feed.shared = 5;
      BackwardFinish finish;
      finish.sums.at[0] = bench.floats(sums);
      finish.sums.at[1] = bench.floats(more);
      finish.sums.parts = parts;
      finish.sums.stride = channels;
      finish.products = products;
      finish.channels = channels;
      finish.pixels = pixels;
      finish.gamma = bench.floats(gamma);
      finish.feed = bench.put(std::vector<FeedNumbers>{feed});
      finish.vectors.mean = bench.floats(mean);
      finish.vectors.rstd = bench.floats(rstd);
      for (float** factor : {&finish.vectors.a, &finish.vectors.b, &finish.vectors.d})
        *factor = bench.empty<float>(channels);
      NormGradients gradients;
      gradients.sums = finish.sums;
      gradients.products = products;
      gradients.channels = channels;
      gradients.rstd = finish.vectors.rstd;
      gradients.loss_scale = bench.put(std::vector<float>{8});
      gradients.dgamma = bench.empty<float>(channels);
      gradients.exchange_dbeta = bench.empty<float>(channels);
      gradients.exchange_dgamma = bench.empty<float>(channels);
      expect_success(finish_gradients(gradients, bench.stream()));

      const Values dbeta = by_channel({parts, channels}, [&](std::size_t i) { return sums[i]; });
      Values dgamma = by_channel({parts, channels}, [&](std::size_t i) { return more[i]; });
      Values a, b, d, unscaled, unscaled_beta;
      for (std::size_t c = 0; c < channels; ++c) {
        if (products == Products::centred) dgamma[c] *= rstd[c];
        a.push_back(gamma[c] * rstd[c]);
        b.push_back(-a[c] * rstd[c] * dgamma[c] / (5 * pixels));
        d.push_back(-a[c] * dbeta[c] / (5 * pixels) - b[c] * mean[c]);
        unscaled.push_back(dgamma[c] / 8);
        unscaled_beta.push_back(dbeta[c] / 8);
      }
      const auto read = [&](const float* from) { return bench.floats(from, channels); };
      expect_close(read(gradients.dgamma), unscaled, 0x1p-23, "dgamma");
      expect_close(read(gradients.exchange_dbeta), dbeta, 0x1p-23, "exchanged dbeta");
      expect_close(read(gradients.exchange_dgamma), dgamma, 0x1p-23, "exchanged dgamma");

      // From here the sums count as exchanged; and both in one launch.
      expect_success(finish_backward(finish, bench.stream()));
      for (const bool both : {false, true}) {
        if (both) {
          for (float** factor : {&finish.vectors.a, &finish.vectors.b, &finish.vectors.d})
            *factor = bench.empty<float>(channels);
          gradients.dgamma = nullptr;
          gradients.dbeta = bench.empty<float>(channels);
          expect_success(finish_backward(finish, gradients, bench.stream()));
          expect_close(read(gradients.dbeta), unscaled_beta, 0x1p-23, "dbeta");
        }
        expect_close(read(finish.vectors.a), a, 0x1p-23, "a");
        expect_close(read(finish.vectors.b), b, 0x1p-22, "b");
        expect_close(read(finish.vectors.d), d, 0x1p-22, "d");
      }
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
