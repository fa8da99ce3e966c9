// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/flat.hpp"

#include <limits>

#include "cuda/kernels/bench.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

/// Lengths around packs of 4, with starts that are on 16 bytes and that aren't.
constexpr Index lengths[] = {1, 3, 4, 1027, 70001};

class Flat : public EveryStorage {};
INSTANTIATE_TEST_SUITE_P(All, Flat, testing::Values(Storage::f32), name_of_storage);

TEST_P(Flat, CopiesAddsFillsAndBlends) {
  in_all_orders([&] {
    for (const Index n : lengths) {
      for (const Index start : {0, 3}) {
        SCOPED_TRACE(testing::Message() << n << " from " << start);
        Bench bench;
        const Values to = formula_values("to", n + start), from = formula_values("from", n + start);
        float* const device_from = bench.floats(from) + start;
        StepNumbers numbers;
        numbers.ema_decay = 0.75F;
        const StepNumbers* const step = bench.put(std::vector<StepNumbers>{numbers});
        const auto expect = [&](const auto& kernel, const auto& formula) {
          float* const device = bench.floats(to);
          expect_success(kernel(device + start));
          Values want(to.begin(), to.begin() + start);
          for (std::size_t i = static_cast<std::size_t>(start); i < to.size(); ++i)
            want.push_back(formula(static_cast<float>(to[i]), static_cast<float>(from[i])));
          EXPECT_EQ(bench.floats(device, n + start), want);
        };
        expect([&](float* at) { return copy_floats(at, device_from, n, 0.3F, bench.stream()); },
               [](float, float b) { return 0.3F * b; });
        expect([&](float* at) { return add_floats(at, device_from, n, bench.stream()); },
               [](float a, float b) { return a + b; });
        expect([&](float* at) { return fill_floats(at, n, 7, bench.stream()); }, [](float, float) { return 7.0F; });
        expect([&](float* at) { return blend_floats(at, device_from, n, step, bench.stream()); },
               [](float a, float b) { return 0.75F * a + 0.25F * b; });
      }
    }
  });
}

TEST_P(Flat, ConvertsAsTheWireSays) {
  in_all_orders([&] {
    for (const Wire wire : {Wire::bf16, Wire::fp16})
      for (const Index n : lengths) {
        for (const Index start : {0, 3}) {
          SCOPED_TRACE(testing::Message() << n << " from " << start << " in " << convoy::name_of(wire));
          Bench bench;
          const Values from = formula_values("from", n + start);
          std::vector<std::uint16_t> halves(from.size());
          std::vector<float> rounded(from.begin(), from.end());
          for (std::size_t i = static_cast<std::size_t>(start); i < from.size(); ++i) {
            halves[i] = narrowed(static_cast<float>(from[i]), wire);
            rounded[i] = widened(halves[i], wire);
          }
          auto* const narrow = bench.put(std::vector<std::uint16_t>(from.size()));
          expect_success(narrow_floats(narrow + start, bench.floats(from) + start, n, wire, bench.stream()));
          EXPECT_EQ(bench.get(narrow, n + start), halves);
          const Values want(rounded.begin(), rounded.end());
          float* const wide = bench.floats(from);
          expect_success(widen_floats(wide + start, bench.put(halves) + start, n, wire, bench.stream()));
          EXPECT_EQ(bench.floats(wide, n + start), want);
          float* const in_place = bench.floats(from);
          expect_success(round_floats(in_place + start, n, wire, bench.stream()));
          EXPECT_EQ(bench.floats(in_place, n + start), want);
        }
      }
  });
}

TEST_P(Flat, NothingIsLaunchedForNothing) {
#ifdef CONVOY_ON_GPU
  GTEST_SKIP() << "a GPU does not count launches";
#else
  host_cuda::counts() = {};
  expect_success(copy_floats(nullptr, nullptr, 0, 1, nullptr));
  expect_success(clear_ranges(nullptr, nullptr, 0, 0, nullptr));
  EXPECT_EQ(host_cuda::counts().kernels, 0);
#endif
}

TEST_P(Flat, ClearsRanges) {
  in_all_orders([&] {
    Bench bench;
    Values block = formula_values("block", 3000, 1, 5);
    float* const device = bench.floats(block);
    const std::vector<FloatRange> ranges{{2, 5}, {100, 1}, {1000, 1999}};
    expect_success(clear_ranges(device, bench.put(ranges), 3, 1999, bench.stream()));
    for (const FloatRange& range : ranges)
      for (Index i = range.begin; i < range.begin + range.count; ++i) block[static_cast<std::size_t>(i)] = 0;
    EXPECT_EQ(bench.floats(device, 3000), block);
  });
}

TEST_P(Flat, DeliversFromPinnedMemory) {
  in_all_orders([&] {
    Bench bench;
    for (const Index first : {4, 16, 56, 16 * 300 + 12}) {
      for (const Index second : {0, 4, 1 << 20}) {
        const auto from = [&](Index bytes) {
          void* pinned = nullptr;
          expect_success(cudaMallocHost(&pinned, static_cast<std::size_t>(bytes) + 4));
          for (Index i = 0; i < bytes / 4; ++i) static_cast<float*>(pinned)[i] = static_cast<float>(i + 1);
          return pinned;
        };
        Values want(static_cast<std::size_t>(first / 4 + 1), 0.5);
        float* const to = bench.floats(want);
        float* const to_second = bench.empty<float>(second / 4 + 1);
        const Delivery delivery{{{to, from(first), first}, {to_second, from(second), second}}};
        expect_success(deliver(delivery, bench.stream()));
        for (Index i = 0; i < first / 4; ++i) want[static_cast<std::size_t>(i)] = static_cast<double>(i + 1);
        EXPECT_EQ(bench.floats(to, first / 4 + 1), want) << "and nothing behind it";
        const std::vector<float> there = bench.get(to_second, second / 4);
        for (Index i = 0; i < second / 4; ++i) ASSERT_EQ(there[static_cast<std::size_t>(i)], static_cast<float>(i + 1));
        for (const Delivery::Part& part : delivery.parts) cudaFreeHost(const_cast<void*>(part.from));
      }
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
