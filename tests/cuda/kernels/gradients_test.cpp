// SPDX-License-Identifier: Apache-2.0
// The end of a stage: filters' gradients are turned, gaps zeroed, and what isn't finite becomes the replica's flag.
#include "backend/cuda/kernels/gradients.hpp"

#include <limits>

#include "backend/cuda/kernels/update.hpp"
#include "cuda/kernels/bench.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

class Gradients : public EveryStorage {
 protected:
  struct Collected {
    GradientCollection now;
    float* flags = nullptr;
  };
  static Collected make(Bench& bench, const std::vector<GradientPiece>& pieces, const std::byte* arena,
                        float* gradients) {
    Collected made;
    made.now.storage = storage();
    made.now.arena = arena;
    made.now.pieces = bench.put(pieces);
    made.now.count = static_cast<int>(pieces.size());
    made.now.gradients = gradients;
    made.now.worst = bench.put(std::vector<std::int32_t>{no_stage});
    made.now.arrivals = bench.put(std::vector<unsigned>{0});
    FeedNumbers feed;
    feed.replica = 2;
    made.now.feed = bench.put(std::vector<FeedNumbers>{feed});
    made.flags = bench.put(std::vector<float>(4, 9));
    return made;
  }
};
CONVOY_EVERY_STORAGE(Gradients);

/// Slices of channels and of k, padded channels, beside gradients that kernels wrote and a gap.
TEST_P(Gradients, FiltersAreTurnedAndGapsZeroed) {
  constexpr Index ks = 3, channels = 5, rs = 9, stored_c = 8, filter = ks * channels * rs;
  in_all_orders([&] {
    Bench bench;
    Values from = formula_values("dw", 16 + ks * rs * stored_c);
    const auto* const arena = static_cast<const std::byte*>(bench.elements(from, storage()));
    Values block = formula_values("block", 40 + filter, 1, 5);
    float* const gradients = bench.floats(block);
    std::vector<GradientPiece> pieces;
    for (const auto& [k, k_count, c, c_count] : {std::array<Index, 4>{0, 1, 0, 3}, {0, 1, 3, 2}, {1, 2, 0, 5}}) {
      GradientPiece piece{.begin = 20 + (k * channels + c) * rs,
                          .from = (16 + k * rs * stored_c + c) * bytes_of(storage())};
      piece.ks = static_cast<std::int32_t>(k_count);
      piece.channels = static_cast<std::int32_t>(c_count);
      piece.rs = rs;
      piece.stored_c = stored_c;
      pieces.push_back(piece);
    }
    pieces.push_back({.begin = 0, .channels = 13});
    pieces.push_back({.begin = 13, .from = GradientPiece::unwritten, .channels = 7});
    Collected made = make(bench, pieces, arena, gradients);
    made.now.loss_scale = bench.put(std::vector<float>{2});
    made.now.flags = made.flags;
    expect_success(collect_gradients(made.now, bench.stream()));
    for (std::size_t i = 13; i < 20; ++i) block[i] = 0;
    for (Index k = 0; k < ks; ++k)
      for (Index c = 0; c < channels; ++c)
        for (Index s = 0; s < rs; ++s)
          block[static_cast<std::size_t>(20 + (k * channels + c) * rs + s)] =
              from[static_cast<std::size_t>(16 + (k * rs + s) * stored_c + c)] / 2;
    EXPECT_EQ(bench.floats(gradients, 40 + filter), Values(block));
    EXPECT_EQ(bench.floats(made.flags, 4), (Values{9, 9, 0, 9}));
    EXPECT_EQ(bench.get(made.now.arrivals, 1)[0], 0U);
  });
}

/// Whether a kernel wrote it or a convolution left it; a gap's old values don't count.
TEST_P(Gradients, TheFirstStageThatIsNotFiniteIsTheFlag) {
  constexpr Index count = 9000;
  in_all_orders([&] {
    for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
      for (const Index at : {Index{0}, Index{4500}, count - 1}) {
        for (const Index from : {GradientPiece::written, Index{0}, GradientPiece::unwritten}) {
          Bench bench;
          Values values(count, 3.0);
          float* const good = bench.floats(values);
          values[static_cast<std::size_t>(at)] = bad;
          float* const poisoned = bench.floats(values);
          const auto* const arena = static_cast<const std::byte*>(bench.elements(values, storage()));
          std::vector<GradientPiece> pieces;
          for (Index begin = 0; begin < count; begin += piece_elements) {
            GradientPiece piece{.begin = begin, .from = from < 0 ? from : begin * bytes_of(storage())};
            piece.channels = static_cast<std::int32_t>(std::min<Index>(piece_elements, count - begin));
            piece.stored_c = piece.channels;
            pieces.push_back(piece);
          }
          Collected made = make(bench, pieces, arena, poisoned);
          for (const int stage : {5, 3, 4}) {
            made.now.stage = stage;
            expect_success(collect_gradients(made.now, bench.stream()));
          }
          const auto last = [&](float* gradients) {
            made.now.stage = 6;
            made.now.gradients = gradients;
            made.now.flags = made.flags;
            for (GradientPiece& piece : pieces) piece.from = GradientPiece::written;
            made.now.pieces = bench.put(pieces);
            expect_success(collect_gradients(made.now, bench.stream()));
            return bench.floats(made.flags, 4);
          };
          ASSERT_EQ(last(good), (Values{9, 9, from == GradientPiece::unwritten ? 0.0 : 4.0, 9}))
              << from << " at " << at;
          EXPECT_EQ(last(good), (Values{9, 9, 0, 9})) << "the next step begins anew";
        }
      }
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
