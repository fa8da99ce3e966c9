// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/concatenation.hpp"

#include "cuda/kernels/bench.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

class ConcatenationTest : public EveryStorage {};
CONVOY_EVERY_STORAGE(ConcatenationTest);

constexpr Index rows = 37;

/// Packs alone, mixed with odd numbers, wider than a block of packs, and as many parts as there may be.
std::vector<std::vector<Index>> widths() {
  return {{8, 16}, {5, 8, 3}, {2056, 8}, {300, 1}, {16}, std::vector<Index>(ChannelParts::most, 2)};
}

struct Whole {
  Whole(const std::vector<Index>& widths, Storage storage) {
    parts.storage = storage;
    parts.rows = rows;
    for (const Index channels : widths) {
      parts.parts[parts.count++] = {nullptr, channels, parts.channels};
      parts.channels += channels;
    }
  }
  /// The channels of a part in the rows of the whole.
  Values part_of(const Values& whole, int part) const {
    Values values;
    for (Index row = 0; row < rows; ++row)
      for (Index c = 0; c < parts.parts[part].channels; ++c)
        values.push_back(whole[static_cast<std::size_t>(row * parts.channels + parts.parts[part].begin + c)]);
    return values;
  }
  ChannelParts parts;
};

TEST_P(ConcatenationTest, JoinsRowsSideBySide) {
  in_all_orders([&] {
    for (const std::vector<Index>& channels : widths()) {
      Bench bench;
      Whole whole(channels, storage());
      Values want = formula_values("whole", rows * whole.parts.channels);
      bench.elements(want, storage());  // rounds them
      for (int i = 0; i < whole.parts.count; ++i) {
        Values part = whole.part_of(want, i);
        whole.parts.parts[i].tensor = bench.elements(part, storage());
      }
      whole.parts.whole = bench.empty_elements(rows * whole.parts.channels, storage());
      expect_success(join_channels(whole.parts, bench.stream()));
      EXPECT_EQ(bench.elements(whole.parts.whole, rows * whole.parts.channels, storage()), want);
    }
  });
}

TEST_P(ConcatenationTest, SplitsAndLeavesOutWhatIsNotWanted) {
  in_all_orders([&] {
    for (const std::vector<Index>& channels : widths()) {
      Bench bench;
      Whole whole(channels, storage());
      Values from = formula_values("whole", rows * whole.parts.channels);
      whole.parts.whole = bench.elements(from, storage());
      for (int i = 0; i < whole.parts.count; ++i)
        if (i != 1) whole.parts.parts[i].tensor = bench.empty_elements(rows * whole.parts.parts[i].channels, storage());
      expect_success(split_channels(whole.parts, bench.stream()));
      for (int i = 0; i < whole.parts.count; ++i) {
        if (i == 1) continue;
        const ChannelParts::Part& part = whole.parts.parts[i];
        EXPECT_EQ(bench.elements(part.tensor, rows * part.channels, storage()), whole.part_of(from, i)) << i;
      }
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
