// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/errors.hpp"
#include "support/formula.hpp"

namespace convoy::cpu {
namespace {

TEST(HostMemory, BlocksAreZeroAlignedAndApart) {
  HostMemory memory;
  for (const Index floats : {Index{0}, Index{1}, Index{1000}, Index{1} << 19, (Index{1} << 20) + 1}) {
    float* const block = memory.allocate(floats);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << floats;
    EXPECT_TRUE(std::all_of(block, block + floats, [](float v) { return v == 0; })) << floats;
    std::fill_n(block, floats, 1.0F);
  }
}

TEST(HostMemory, BigBlocksStartOnAHugePage) {
  HostMemory memory;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.allocate(Index{1} << 19)) % (2 << 20), 0U);
}

TEST(HostMemory, RunningOutIsAnErrorOfTheDevice) {
  HostMemory memory;
  for (const Index floats : {Index{1} << 48, Index{1} << 62}) {
    try {
      memory.allocate(floats);
      FAIL() << floats << " floats were there";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::device);
      EXPECT_NE(std::string(error.what()).find("memory"), std::string::npos) << error.what();
    }
  }
}

TEST(FlatKernels, AreExactForAnySize) {
  for (const Index n : {Index{1}, Index{17}, Index{100003}}) {
    const reference::Values a = formula_values("a", n), b = formula_values("b", n, 1e-4);
    std::vector<float> to(a.begin(), a.end());
    const std::vector<float> from(b.begin(), b.end());
    add_floats(to.data(), from.data(), n);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], static_cast<float>(a[i]) + static_cast<float>(b[i]));
    copy_floats(to.data(), from.data(), n, 0.3F);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], 0.3F * static_cast<float>(b[i]));
    copy_floats(to.data(), to.data(), n, 2);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], 2 * (0.3F * static_cast<float>(b[i])));
    fill_floats(to.data(), n - 1, -7);
    EXPECT_TRUE(std::all_of(to.begin(), to.end() - 1, [](float v) { return v == -7; }));
    EXPECT_EQ(to.back(), 2 * (0.3F * static_cast<float>(b.back())));
  }
}

}  // namespace
}  // namespace convoy::cpu
